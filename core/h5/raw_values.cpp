// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/h5/raw_values.h"

#include <fmt/format.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <vector>

#include "core/error.h"
#include "core/side_file.h"

namespace sinkscope::h5 {

static_assert(std::endian::native == std::endian::little);

namespace {

void write_bytes(int descriptor, std::int64_t offset, const char* bytes, std::int64_t n,
                 const std::string& where) {
  if (!write_at(descriptor, offset, bytes, static_cast<std::size_t>(n)))
    throw Error(ErrorKind::io, fmt::format("cannot write {}: {}", where, std::strerror(errno)));
}

template <class From, class To>
std::vector<char> convert(const void* values, std::int64_t n) {
  const auto* from = static_cast<const From*>(values);
  std::vector<char> bytes(static_cast<std::size_t>(n) * sizeof(To));
  for (std::int64_t i = 0; i < n; ++i) {
    const To to = static_cast<To>(from[i]);
    std::memcpy(bytes.data() + static_cast<std::size_t>(i) * sizeof(To), &to, sizeof(To));
  }
  return bytes;
}

}  // namespace

void write_raw(const RawPlace& place, const Dims& dims, const Dims& start, const Dims& count,
               ElementType type, const void* values, const std::string& where) {
  std::int64_t n = 1;
  for (const std::int64_t c : count) n *= c;
  if (n == 0) return;
  std::vector<char> converted;
  const char* bytes = static_cast<const char*>(values);
  if (type == ElementType::f32 && place.type == ElementType::f64) {
    converted = convert<float, double>(values, n);
    bytes = converted.data();
  } else if (type == ElementType::f64 && place.type == ElementType::f32) {
    converted = convert<double, float>(values, n);
    bytes = converted.data();
  }

  // Trailing dimensions that are taken whole make one piece with the one before them.
  const std::size_t rank = dims.size();
  std::size_t split = rank;
  std::int64_t piece = element_size(place.type), stride = piece;  // bytes
  while (split > 0) {
    --split;
    piece = count[split] * stride;
    stride *= dims[split];
    if (count[split] != dims[split]) break;
  }
  // Bytes of one step along each dimension.
  Dims step(rank, element_size(place.type));
  for (std::size_t i = rank; i-- > 1;) step[i - 1] = step[i] * dims[i];

  Dims at = start;
  const std::int64_t n_pieces = n * element_size(place.type) / piece;
  for (std::int64_t k = 0; k < n_pieces; ++k) {
    std::int64_t offset = place.offset;
    for (std::size_t i = 0; i < rank; ++i) offset += at[i] * step[i];
    write_bytes(place.descriptor, offset, bytes + k * piece, piece, where);
    for (std::size_t i = split; i-- > 0;) {
      if (++at[i] < start[i] + count[i]) break;
      at[i] = start[i];
    }
  }
}

}  // namespace sinkscope::h5
