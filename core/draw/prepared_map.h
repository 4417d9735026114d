// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/pyramid.h"
#include "core/draw/range_finder.h"

namespace sinkscope {

// A map with everything about it that takes a pass over its cells: for large maps, made off the
// window's thread. A copy shares it.
struct PreparedMap {
  Pyramid pyramid;
  RangeFinder ranges;

  // Whether it is of these very values.
  bool is_of(const Grid& grid) const {
    return ranges.grids().size() == 1 && ranges.grids()[0].same_values(grid);
  }
};

PreparedMap prepare(const Grid& grid, Reduction reduction = Reduction::max_abs);

}  // namespace sinkscope
