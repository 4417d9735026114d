// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <vector>

#include "capture/checkpoint/model_files.h"

namespace sinkscope {

// Rows [begin, end) of a role, and where they go.
struct Stretch {
  Role role;
  std::int64_t begin, end;
  float* out;
};

// What ModelFiles::read_rows gives for several stretches of a block's roles. Those that lie mixed
// in one stored tensor (columns of a fused projection, alternating rows of gate and up) are read
// together, once. Throws what read_rows throws.
void read_together(const ModelFiles& model, int layer, const std::vector<Stretch>& wanted);

}  // namespace sinkscope
