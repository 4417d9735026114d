// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <type_traits>
#include <vector>

namespace sinkscope::test {

// Writes `bytes` to `path` and returns the path.
inline std::string write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return path;
}

// The bytes of a list of numbers.
template <class T>
std::string bytes_of(const std::vector<T>& values) {
  static_assert(std::is_arithmetic_v<T>);
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

// Builds safetensors files byte by byte; tensors lie in the order in which they were added.
class SafetensorsBytes {
 public:
  // `data` are the stored bytes; nothing is checked against the shape.
  SafetensorsBytes& tensor(const std::string& name, const std::string& dtype,
                           const std::vector<std::int64_t>& shape, const std::string& data) {
    std::string dims;
    for (const std::int64_t dim : shape) dims += (dims.empty() ? "" : ",") + std::to_string(dim);
    entries_ += (entries_.empty() ? "" : ",") + ("\"" + name) + "\":{\"dtype\":\"" + dtype +
                "\",\"shape\":[" + dims + "],\"data_offsets\":[" + std::to_string(data_.size()) +
                "," + std::to_string(data_.size() + data.size()) + "]}";
    data_ += data;
    return *this;
  }
  SafetensorsBytes& floats(const std::string& name, const std::vector<std::int64_t>& shape,
                           const std::vector<float>& values) {
    return tensor(name, "F32", shape, bytes_of(values));
  }

  std::string build() const { return join("{" + entries_ + "}", data_); }
  std::string write(const std::string& path) const { return write_bytes(path, build()); }

  // Length, header, data: for headers that no writer would make.
  static std::string join(const std::string& header, const std::string& data) {
    return bytes_of(std::vector<std::uint64_t>{header.size()}) + header + data;
  }

 private:
  std::string entries_, data_;
};

}  // namespace sinkscope::test
