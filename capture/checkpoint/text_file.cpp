// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/text_file.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>
#include <vector>

#include "capture/checkpoint/file_reader.h"
#include "capture/checkpoint/printable.h"
#include "core/error.h"
#include "core/output_path.h"

namespace sinkscope {
std::string read_text_file(const std::string& path) {
  constexpr std::uint64_t kLargest = std::uint64_t{64} << 20;
  const FileReader file(path);
  if (file.size() > kLargest) {
    throw Error(ErrorKind::corrupt, fmt::format("{}: {} bytes, expected a text of at most {}", path,
                                                file.size(), kLargest));
  }
  std::string text(file.size(), '\0');
  file.read(0, text.size(), text.data());
  return text;
}

namespace {

// Builds a document from the parser's events and looks it over meanwhile: the library's own builder
// keeps a key that occurs twice once, without a word. What it is called with comes from the
// library's interface json_sax.
class DocumentBuilder {
 public:
  using Json = nlohmann::json;

  DocumentBuilder(const std::string& path, const std::string& text) : path_(path), text_(text) {}

  Json take() { return std::move(root_); }

  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(Json::number_integer_t value) { return add(value); }
  bool number_unsigned(Json::number_unsigned_t value) { return add(value); }
  bool number_float(Json::number_float_t value, const std::string&) { return add(value); }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(Json::binary_t& value) { return add(std::move(value)); }

  bool start_object(std::size_t) { return open(Json::object()); }
  bool start_array(std::size_t) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    const auto [member, is_new] =
        open_.back()->get_ref<Json::object_t&>().emplace(std::move(name), nullptr);
    if (!is_new)
      refuse(fmt::format("the key \"{}\" occurs twice in one object", printable(member->first)));
    member_ = &member->second;
    return true;
  }

  template <class Exception>
  bool parse_error(std::size_t at, const std::string&, const Exception& e) {
    if constexpr (!std::is_same_v<Exception, Json::parse_error>)
      refuse(fmt::format("not JSON: {}", json_reason(e.what())));  // a number beyond every range
    refuse(fmt::format("not JSON at byte {}{}", at,
                       text_.starts_with("version https://git-lfs")
                           ? ": a Git-LFS pointer, not the file itself"
                           : ""));
  }

 private:
  static constexpr std::size_t kDeepest = 64;

  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(ErrorKind::corrupt, fmt::format("{}: {}", path_, what));
  }

  // Where the next value belongs. Elements keep their place while they are open: only the
  // innermost open array grows.
  template <class Value>
  Json& place(Value&& value) {
    if (open_.empty()) return root_ = std::forward<Value>(value);
    if (open_.back()->is_array()) {
      auto& array = open_.back()->get_ref<Json::array_t&>();
      return array.emplace_back(std::forward<Value>(value));
    }
    return *member_ = std::forward<Value>(value);
  }

  template <class Value>
  bool add(Value&& value) {
    place(std::forward<Value>(value));
    return true;
  }

  // The library's parser recurses nowhere, but its documents are destroyed and printed recursively.
  bool open(Json&& value) {
    if (open_.size() > kDeepest) refuse(fmt::format("nested more than {} deep", kDeepest));
    Json& placed = place(std::move(value));
    open_.push_back(&placed);
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  const std::string& path_;
  const std::string& text_;
  Json root_;
  Json* member_ = nullptr;   // what the last key names
  std::vector<Json*> open_;  // objects and arrays, the outermost first
};

}  // namespace

bool is_there(const std::string& path) { return is_taken(path); }

std::string json_reason(const std::string& what) {
  const std::size_t end = what.starts_with("[json.exception") ? what.find("] ") : std::string::npos;
  return printable(end == std::string::npos ? what : what.substr(end + 2));
}

nlohmann::json parse_json(const std::string& text, const std::string& path) {
  DocumentBuilder document(path, text);
  nlohmann::json::sax_parse(text, &document);
  return document.take();
}

nlohmann::json parse_json_file(const std::string& path) {
  return parse_json(read_text_file(path), path);
}

}  // namespace sinkscope
