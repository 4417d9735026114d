// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/h5/chunk_writer.h"

#include <algorithm>
#include <cstring>

namespace sinkscope::h5 {
namespace {

Dims dense_stride(const Dims& shape) {
  Dims stride(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) stride[i - 1] = stride[i] * shape[i];
  return stride;
}

std::int64_t product(const Dims& dims) {
  std::int64_t n = 1;
  for (const std::int64_t dim : dims) n *= dim;
  return n;
}

// Copies a box of `extent` between two strided arrays, dimension `axis` and those after it.
void copy(const Dims& extent, std::size_t axis, const float* from, const Dims& from_stride,
          float* to, const Dims& to_stride) {
  if (axis + 1 == extent.size()) {
    std::memcpy(to, from, static_cast<std::size_t>(extent[axis]) * sizeof(float));
    return;
  }
  for (std::int64_t i = 0; i < extent[axis]; ++i) {
    copy(extent, axis + 1, from + i * from_stride[axis], from_stride, to + i * to_stride[axis],
         to_stride);
  }
}

// Whether the elements of the box lie in memory without gaps.
bool is_dense(const Dims& extent, const Dims& stride) {
  std::int64_t expected = 1;
  for (std::size_t i = extent.size(); i-- > 0;) {
    if (extent[i] != 1 && stride[i] != expected) return false;
    expected *= extent[i];
  }
  return true;
}

bool covers_whole_chunks(const Dims& dims, const Dims& chunk, const Dims& start,
                         const Dims& count) {
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::int64_t end = start[i] + count[i];
    if (start[i] % chunk[i] != 0 || (end % chunk[i] != 0 && end != dims[i])) return false;
  }
  return true;
}

}  // namespace

StridedValues StridedValues::dense(const float* data, const Dims& count) {
  return {data, dense_stride(count)};
}

void ChunkWriter::write(Dataset& dataset, const Dims& chunk, const Dims& start, const Dims& count,
                        const StridedValues& values) {
  if (product(count) == 0) return;
  if (!covers_whole_chunks(dataset.dims(), chunk, start, count)) {
    const float* box = values.data;
    if (!is_dense(count, values.stride)) {
      buffer_.resize(static_cast<std::size_t>(product(count)));
      copy(count, 0, values.data, values.stride, buffer_.data(), dense_stride(count));
      box = buffer_.data();
    }
    dataset.write(start, count, ElementType::f32, box);
    return;
  }
  Dims at(start.size(), 0);  // of the chunk's corner, within the box
  while (true) {
    Dims corner(start.size()), extent(start.size());
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < start.size(); ++i) {
      corner[i] = start[i] + at[i];
      extent[i] = std::min(chunk[i], count[i] - at[i]);
      offset += at[i] * values.stride[i];
    }
    write_chunk(dataset, chunk, corner, extent, values.data + offset, values.stride);
    std::size_t i = start.size();
    while (i-- > 0) {
      if ((at[i] += chunk[i]) < count[i]) break;
      at[i] = 0;
      if (i == 0) return;
    }
  }
}

void ChunkWriter::write_chunk(Dataset& dataset, const Dims& chunk, const Dims& at,
                              const Dims& extent, const float* values, const Dims& stride) {
  const std::int64_t n = product(chunk);
  const float* whole = values;
  if (extent != chunk || !is_dense(extent, stride)) {
    buffer_.resize(static_cast<std::size_t>(n));
    if (extent != chunk) std::fill(buffer_.begin(), buffer_.end(), 0.0F);
    copy(extent, 0, values, stride, buffer_.data(), dense_stride(chunk));
    whole = buffer_.data();
  }
  dataset.write_chunk(at, whole, n * element_size(ElementType::f32));
}

}  // namespace sinkscope::h5
