// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <vector>

#include "capture/checkpoint/checkpoint.h"
#include "capture/checkpoint/role_table.h"

namespace sinkscope {

// Rows and columns that a role sees.
std::int64_t view_rows(const TensorRef& ref, const TensorInfo& tensor);
std::int64_t view_cols(const TensorRef& ref, const TensorInfo& tensor);

// Rows [begin, end) of the role, whatever lies between it and the stored tensor but for RowOrder.
// Only stored rows that hold them are read, or rows close by.
void read_view(const Checkpoint& checkpoint, const TensorRef& ref, std::int64_t begin,
               std::int64_t end, float* out);

// Rows [begin, end) of a role, and where they go.
struct ViewStretch {
  const TensorRef* ref;
  std::int64_t begin, end;
  float* out;
};

// Whether the stretches lie mixed in one stored tensor, so that reading each for itself would read
// it more than once: columns of the same matrices, or alternating rows.
bool lie_mixed(const std::vector<ViewStretch>& stretches);

// Reads stretches that lie mixed, every stored row once.
void read_mixed(const Checkpoint& checkpoint, const std::vector<ViewStretch>& stretches);

}  // namespace sinkscope
