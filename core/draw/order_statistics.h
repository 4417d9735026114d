// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <span>

#include "core/draw/grid.h"

namespace sinkscope {

enum class Counted { all, positive, nonzero_magnitude };

// Exact order statistics of the finite cells of some grids, by counting: a histogram of the upper
// 16 bits of an order-preserving bit pattern, then of the next 16 within the bin that holds the
// rank. Nothing is sorted or copied. Construction is the first pass.
class OrderStatistics {
 public:
  OrderStatistics(std::span<const Grid> grids, Counted counted);
  std::int64_t count() const { return count_; }
  // The value of rank ⌈p · count⌉ (at least 1). Needs count() > 0.
  double quantile(double p) const;

 private:
  std::span<const Grid> grids_;
  Counted counted_;
  bool is_float_;
  std::int64_t count_ = 0;
  std::vector<std::int64_t> bins_;
};

}  // namespace sinkscope
