// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <fstream>
#include <initializer_list>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace sinkscope::test {

// Builds GGUF files byte by byte, the malformed ones included. Keys and tensors are written in the
// order they were added; offsets are the running padded sum unless given.
class GgufBytes {
 public:
  std::uint32_t version = 3;
  std::uint64_t alignment = 32;  // used for padding; the key general.alignment is up to the test
  std::optional<std::uint64_t> claimed_tensors, claimed_keys;
  bool pad_end = true;

  template <class T>
  static std::string raw(T value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  static std::string text(const std::string& s) { return raw(std::uint64_t{s.size()}) + s; }

  // The format's own type ids.
  template <class T>
  static constexpr std::uint32_t type_id() {
    if constexpr (std::is_same_v<T, std::uint8_t>) return 0;
    if constexpr (std::is_same_v<T, std::int8_t>) return 1;
    if constexpr (std::is_same_v<T, std::uint16_t>) return 2;
    if constexpr (std::is_same_v<T, std::int16_t>) return 3;
    if constexpr (std::is_same_v<T, std::uint32_t>) return 4;
    if constexpr (std::is_same_v<T, std::int32_t>) return 5;
    if constexpr (std::is_same_v<T, float>) return 6;
    if constexpr (std::is_same_v<T, bool>) return 7;
    if constexpr (std::is_same_v<T, std::string>) return 8;
    if constexpr (std::is_same_v<T, std::uint64_t>) return 10;
    if constexpr (std::is_same_v<T, std::int64_t>) return 11;
    if constexpr (std::is_same_v<T, double>) return 12;
  }

  GgufBytes& key_raw(const std::string& name, std::uint32_t type, const std::string& value) {
    keys_.push_back(text(name) + raw(type) + value);
    return *this;
  }
  template <class T>
  GgufBytes& key(const std::string& name, T value) {
    return key_raw(name, type_id<T>(), bytes(value));
  }
  GgufBytes& key(const std::string& name, const char* value) {
    return key(name, std::string(value));
  }
  template <class T>
  GgufBytes& list(const std::string& name, const std::vector<T>& values) {
    std::string all = raw(type_id<T>()) + raw(std::uint64_t{values.size()});
    for (const T& value : values) all += bytes(value);
    return key_raw(name, 9, all);
  }

  // `shape` outermost first; `data` are the stored bytes, padded to the alignment.
  GgufBytes& tensor(const std::string& name, const std::vector<std::int64_t>& shape,
                    std::uint32_t type, const std::string& data,
                    std::optional<std::uint64_t> offset = {}) {
    pad(data_);
    std::string info = text(name) + raw(static_cast<std::uint32_t>(shape.size()));
    for (auto dim = shape.rbegin(); dim != shape.rend(); ++dim) info += raw(*dim);
    infos_.push_back(info + raw(type) + raw(offset.value_or(data_.size())));
    data_ += data;
    return *this;
  }
  GgufBytes& floats(const std::string& name, const std::vector<std::int64_t>& shape,
                    const std::vector<float>& values) {
    std::string data;
    for (const float value : values) data += raw(value);
    return tensor(name, shape, 0, data);
  }

  // The header without padding and data.
  std::string header() const {
    std::string all = "GGUF" + raw(version) + raw(claimed_tensors.value_or(infos_.size())) +
                      raw(claimed_keys.value_or(keys_.size()));
    for (const std::string& key : keys_) all += key;
    for (const std::string& info : infos_) all += info;
    return all;
  }
  std::string build() const {
    std::string all = header();
    pad(all);
    std::string data = data_;
    if (pad_end) pad(data);
    return all + data;
  }
  std::string write(const std::string& path) const { return write_bytes(path, build()); }

  static std::string write_bytes(const std::string& path, const std::string& all) {
    std::ofstream(path, std::ios::binary)
        .write(all.data(), static_cast<std::streamsize>(all.size()));
    return path;
  }

 private:
  static std::string bytes(const std::string& value) { return text(value); }
  template <class T>
  static std::string bytes(T value) {
    return raw(value);
  }
  void pad(std::string& all) const {
    all.resize((all.size() + alignment - 1) / alignment * alignment);
  }

  std::vector<std::string> keys_, infos_;
  std::string data_;
};

}  // namespace sinkscope::test
