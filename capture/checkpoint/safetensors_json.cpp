// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/safetensors_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "capture/checkpoint/printable.h"
#include "core/error.h"

namespace sinkscope {
namespace {

using Json = nlohmann::json;

// {"name": {"dtype": "F32", "shape": [..], "data_offsets": [b, e], ...}, "__metadata__": {..}}
class HeaderHandler : public nlohmann::json_sax<Json> {
 public:
  explicit HeaderHandler(std::string path) : path_(std::move(path)) {}

  std::vector<HeaderEntry> entries;

  bool null() override { return scalar("null"); }
  bool boolean(bool) override { return scalar("a boolean"); }
  bool number_integer(number_integer_t value) override {
    return scalar(fmt::format("{}", value));  // only negative numbers come this way
  }
  bool number_float(number_float_t, const string_t& text) override {
    return scalar(printable(text));
  }
  bool binary(binary_t&) override { return scalar("binary"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ == Place::shape) {
      entry().shape.push_back(value);
    } else if (place_ == Place::offsets) {
      if (n_offsets_ < 2) (n_offsets_ == 0 ? entry().begin : entry().end) = value;
      ++n_offsets_;
    } else {
      return scalar(fmt::format("{}", value));
    }
    return true;
  }

  bool string(string_t& value) override {
    if (place_ == Place::metadata) return true;
    if (place_ != Place::entry || field_ != Field::dtype)
      return scalar("\"" + printable(value) + "\"");
    entry().dtype = find_safetensors_dtype(value);
    if (entry().dtype == nullptr) fail(where() + ": unknown dtype \"" + printable(value) + "\"");
    return true;
  }

  bool key(string_t& value) override {
    if (place_ == Place::top) {
      name_ = value;
    } else if (place_ == Place::entry) {
      field_ = value == "dtype"          ? Field::dtype
               : value == "shape"        ? Field::shape
               : value == "data_offsets" ? Field::offsets
                                         : Field::other;
      if (field_ == Field::other) return true;
      const unsigned bit = 1u << static_cast<unsigned>(field_);
      if ((seen_ & bit) != 0) fail(where() + ": \"" + value + "\" twice");
      seen_ |= bit;
    }
    return true;
  }

  bool start_object(std::size_t) override {
    switch (place_) {
      case Place::start:
        place_ = Place::top;
        return true;
      case Place::top:
        if (name_ == "__metadata__") {
          if (has_metadata_) fail("__metadata__ twice");
          has_metadata_ = true;
          place_ = Place::metadata;
          return true;
        }
        place_ = Place::entry;
        seen_ = 0;
        n_offsets_ = 0;
        entries.emplace_back().name = name_;
        return true;
      default:
        return nested("an object");
    }
  }

  bool end_object() override {
    if (place_ == Place::skip) return unnest();
    if (place_ == Place::entry) {
      if (seen_ != 7u) fail(where() + ": dtype, shape or data_offsets is missing");
      place_ = Place::top;
    } else {
      place_ = place_ == Place::metadata ? Place::top : Place::end;
    }
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ == Place::entry && field_ == Field::shape) {
      place_ = Place::shape;
    } else if (place_ == Place::entry && field_ == Field::offsets) {
      place_ = Place::offsets;
    } else {
      return nested("a list");
    }
    return true;
  }

  bool end_array() override {
    if (place_ == Place::skip) return unnest();
    if (place_ == Place::offsets && n_offsets_ != 2)
      fail(fmt::format("{}: data_offsets holds {} numbers, expected 2", where(), n_offsets_));
    place_ = Place::entry;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const Json::exception&) override {
    fail(fmt::format("it is not JSON at byte {}", position));
  }

 private:
  enum class Place { start, top, metadata, entry, shape, offsets, skip, end };
  enum class Field { dtype, shape, offsets, other };

  HeaderEntry& entry() { return entries.back(); }
  std::string where() const { return "tensor " + printable(name_); }

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorKind::corrupt, fmt::format("{}: bad safetensors header: {}", path_, what));
  }

  // A value that is not what its place wants; fine only where everything is skipped.
  bool scalar(const std::string& found) {
    if (place_ == Place::skip || (place_ == Place::entry && field_ == Field::other)) return true;
    unexpected(found);
  }

  bool nested(const std::string& found) {
    if (place_ == Place::entry && field_ == Field::other) {
      place_ = Place::skip;
      depth_ = 0;
    } else if (place_ != Place::skip) {
      unexpected(found);
    }
    if (++depth_ > 4) fail(where() + ": nested too deeply");
    return true;
  }

  bool unnest() {
    if (--depth_ == 0) place_ = Place::entry;
    return true;
  }

  [[noreturn]] void unexpected(const std::string& found) const {
    switch (place_) {
      case Place::top:
        fail(where() + " is " + found + ", expected an object");
      case Place::metadata:
        fail("__metadata__ holds " + found + ", expected text only");
      case Place::entry:
        fail(where() + (field_ == Field::dtype ? ": dtype is " : ": shape or data_offsets is ") +
             found);
      case Place::shape:
        fail(where() + ": shape holds " + found + ", expected whole numbers");
      case Place::offsets:
        fail(where() + ": data_offsets holds " + found + ", expected whole numbers");
      default:
        fail("it is " + found + ", expected an object");
    }
  }

  std::string path_, name_;
  Place place_ = Place::start;
  Field field_ = Field::other;
  unsigned seen_ = 0;  // bit per field of this entry
  int n_offsets_ = 0, depth_ = 0;
  bool has_metadata_ = false;
};

}  // namespace

std::vector<HeaderEntry> parse_safetensors_json(std::string_view text, const std::string& path) {
  const auto fail = [&](const char* what) {
    throw Error(ErrorKind::corrupt, fmt::format("{}: bad safetensors header: {}", path, what));
  };
  if (!is_utf8(text)) fail("it is not UTF-8 text");
  const std::size_t start = text.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos || text[start] != '{') fail("it does not begin with {");
  // The JSON library takes a zero byte for the end of the text.
  if (text.find('\0') != std::string_view::npos) fail("it holds a zero byte");
  HeaderHandler handler(path);
  Json::sax_parse(text, &handler);
  return std::move(handler.entries);
}

}  // namespace sinkscope
