// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/draw/grid.h"

namespace sinkscope {

// Finite cells that are 0 (or −0), and that are above 0.
struct ZeroCounts {
  std::int64_t zeros = 0, positive = 0;
};

// The order statistics that color ranges need, by nearest rank (⌈p·n⌉), exact. Anything where there
// is no such cell.
struct OrderNumbers {
  double low = 0, high = 0;                    // 1st and 99th percentile of the finite cells
  double low_positive = 0, high_positive = 0;  // of those above 0
  double median_magnitude = 0;                 // of |x| ≠ 0
  // Finite cells by the upper half of their ordered bit pattern (order_key); empty where a grid has
  // doubles.
  std::vector<std::int64_t> bins;
};

// In two passes over floats; doubles take more.
OrderNumbers order_numbers(std::span<const Grid> grids, const ZeroCounts& zeros);

}  // namespace sinkscope
