// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/gguf_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <type_traits>
#include <variant>

#include "core/error.h"

namespace sinkscope {
namespace {

enum ValueType : std::uint32_t { boolean = 7, text = 8, array = 9, i64 = 11, f64 = 12 };

template <class T>
constexpr ValueType type_of() {
  if constexpr (std::is_same_v<T, bool>) return boolean;
  if constexpr (std::is_same_v<T, std::int64_t>) return i64;
  if constexpr (std::is_same_v<T, double>) return f64;
  return text;
}

class Bytes {
 public:
  template <class T>
  void number(T value) {
    static_assert(std::is_arithmetic_v<T>);
    content_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void put(const std::string& value) {
    number(static_cast<std::uint64_t>(value.size()));
    content_ += value;
  }
  void put(bool value) { number(static_cast<std::uint8_t>(value)); }
  void put(std::int64_t value) { number(value); }
  void put(double value) { number(value); }
  template <class T>
  void value(const T& one) {
    number<std::uint32_t>(type_of<T>());
    put(one);
  }
  template <class T>
  void value(const std::vector<T>& many) {
    number<std::uint32_t>(array);
    number<std::uint32_t>(type_of<T>());
    number(static_cast<std::uint64_t>(many.size()));
    for (std::size_t i = 0; i < many.size(); ++i) put(T(many[i]));
  }
  void magic() { content_ += "GGUF"; }
  const std::string& content() const { return content_; }

 private:
  std::string content_;
};

}  // namespace

void write_gguf_metadata(const GgufFile& file, const std::vector<std::string>& prefixes,
                         const std::string& path) {
  std::vector<std::string> keys;
  for (const std::string& key : file.keys())
    if (std::any_of(prefixes.begin(), prefixes.end(),
                    [&](const std::string& prefix) { return key.starts_with(prefix); }))
      keys.push_back(key);
  Bytes bytes;
  bytes.magic();
  bytes.number<std::uint32_t>(3);  // version
  bytes.number<std::uint64_t>(0);  // tensors
  bytes.number(static_cast<std::uint64_t>(keys.size()));
  for (const std::string& key : keys) {
    bytes.put(key);
    std::visit([&](const auto& value) { bytes.value(value); }, *file.find_key(key));
  }
  std::ofstream out(path, std::ios::binary);
  out << bytes.content();
  if (!out.flush()) throw Error(ErrorKind::io, fmt::format("{}: cannot be written", path));
}

}  // namespace sinkscope
