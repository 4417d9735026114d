// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/draw/grid.h"

namespace sinkscope {

// Calls f(row, first_col, values, n) for the existing cells of every row; values is const float*
// or const double*.
template <class F>
void for_each_row(const Grid& grid, F&& f) {
  grid.visit([&](const auto* values) {
    for (int row = 0; row < grid.rows(); ++row) {
      const CellSpan span = grid.span(row);
      if (span.begin < span.end)
        f(row, span.begin, values + std::int64_t{row} * grid.cols() + span.begin,
          span.end - span.begin);
    }
  });
}

}  // namespace sinkscope
