// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/npy.h"

#include <fmt/format.h>

#include <bit>
#include <ostream>

#include "core/error.h"

namespace sinkscope {

static_assert(std::endian::native == std::endian::little);

namespace {

const char* descr(ElementType type) {
  switch (type) {
    case ElementType::f32:
      return "<f4";
    case ElementType::f64:
      return "<f8";
    case ElementType::i32:
      return "<i4";
    case ElementType::i64:
      return "<i8";
    case ElementType::text:
      break;
  }
  throw Error(ErrorKind::invalid_argument,
              ".npy holds numbers: expected f32, f64 or i32, found text");
}

template <class T>
void write_values(std::ostream& out, ElementType type, const std::vector<std::int64_t>& dims,
                  const T* values) {
  const std::string header = npy_header(type, dims);
  std::int64_t n = 1;
  for (const std::int64_t dim : dims) n *= dim;
  out.write(header.data(), static_cast<std::streamsize>(header.size()));
  if (n > 0) {
    out.write(reinterpret_cast<const char*>(values),
              static_cast<std::streamsize>(n * element_size(type)));
  }
  if (!out) throw Error(ErrorKind::io, "cannot write .npy data: the output failed");
}

}  // namespace

std::string npy_header(ElementType type, const std::vector<std::int64_t>& dims) {
  std::string shape;
  for (const std::int64_t dim : dims) {
    if (dim < 0) {
      throw Error(ErrorKind::invalid_argument,
                  fmt::format(".npy shape: expected dimensions >= 0, found {}", dim));
    }
    shape += fmt::format("{}, ", dim);
  }
  // Python writes (3,) and (3, 4).
  if (dims.size() == 1) shape.pop_back();
  if (dims.size() > 1) shape.erase(shape.size() - 2);

  std::string dict =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr(type), shape);
  constexpr std::size_t kPrefix = 10;  // magic, version, 16-bit length
  const std::size_t unpadded = kPrefix + dict.size() + 1;
  dict.append((64 - unpadded % 64) % 64, ' ');
  dict.push_back('\n');

  std::string header("\x93NUMPY\x01\x00", 8);
  header.push_back(static_cast<char>(dict.size() & 0xff));
  header.push_back(static_cast<char>(dict.size() >> 8));
  return header + dict;
}

void write_npy(std::ostream& out, const std::vector<std::int64_t>& dims, const float* values) {
  write_values(out, ElementType::f32, dims, values);
}
void write_npy(std::ostream& out, const std::vector<std::int64_t>& dims, const double* values) {
  write_values(out, ElementType::f64, dims, values);
}
void write_npy(std::ostream& out, const std::vector<std::int64_t>& dims,
               const std::int32_t* values) {
  write_values(out, ElementType::i32, dims, values);
}

}  // namespace sinkscope
