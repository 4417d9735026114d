// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

#include "core/draw/prepared_map.h"
#include "core/snapshot/compare_snapshot.h"

namespace sinkscope {

// A comparison with what takes passes over its cells (core/draw/prepared_map.h).
struct PreparedComparison {
  std::vector<PreparedMap> maps;  // the sides, then the differences
  RangeFinder sides, differences;
  bool is_signed = false;  // some side of the residual stream has a negative cell
};

PreparedComparison prepare(const CompareSnapshot& snapshot);

}  // namespace sinkscope
