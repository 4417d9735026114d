// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/draw/value_range.h"

namespace sinkscope {

// Some grids with the numbers that any color range of them follows from, so that another mode or
// scale needs no pass over the cells: for large maps, made off the window's thread. Immutable; a
// copy shares the numbers.
class RangeFinder {
 public:
  RangeFinder() = default;  // of no grid
  explicit RangeFinder(std::vector<Grid> grids);

  std::span<const Grid> grids() const;

  // find_range(grids(), request), without a pass over the cells.
  ValueRange range(const RangeRequest& request) const;

  // summarize(grids(), range): one light pass, none where the range holds everything. Above
  // kExactCells cells the bars of the histogram are right to within 1/128 of their values; the
  // counts always are exact.
  RangeSummary summary(const ValueRange& range, int bins = 64) const;

  static constexpr std::int64_t kExactCells = 1 << 18;

  struct Numbers;

 private:
  std::shared_ptr<const Numbers> numbers_;
};

}  // namespace sinkscope
