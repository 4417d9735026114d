// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

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

}  // namespace sinkscope
