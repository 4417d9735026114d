// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <vector>

#include "core/h5/dataset.h"

namespace sinkscope::h5 {

// Where the values of a box lie in memory: element (i, j, …) of the box is at
// data[i·stride[0] + j·stride[1] + …]; the last stride is 1.
struct StridedValues {
  const float* data = nullptr;
  Dims stride;

  // A box without gaps, in C order.
  static StridedValues dense(const float* data, const Dims& count);
};

// Writes boxes of chunked f32 datasets. A box that covers whole chunks (at the far edge: what there
// is of them, the rest of the chunk is zero) goes straight to disk, past HDF5's selection and cache
// code, which would be several times slower; any other box goes through them.
class ChunkWriter {
 public:
  void write(Dataset& dataset, const Dims& chunk, const Dims& start, const Dims& count,
             const StridedValues& values);

 private:
  void write_chunk(Dataset& dataset, const Dims& chunk, const Dims& at, const Dims& extent,
                   const float* values, const Dims& stride);

  std::vector<float> buffer_;  // one chunk, or a whole box that needs HDF5
};

}  // namespace sinkscope::h5
