// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/range_finder.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/draw/grid_rows.h"
#include "core/draw/order_keys.h"
#include "core/draw/order_numbers.h"
#include "core/draw/range_rules.h"

namespace sinkscope {

struct RangeFinder::Numbers {
  std::vector<Grid> grids;
  RangeSummary cells;  // counts of what is there, whatever the range
  double lowest_positive = std::numeric_limits<double>::infinity();
  ZeroCounts zeros;
  OrderNumbers order;
  std::pair<double, double> linear_mean_sd, log_mean_sd;

  RangeExtent extent(Scale scale) const {
    if (scale == Scale::log)
      return {lowest_positive, cells.highest ? cells.highest->value : 0, zeros.positive};
    if (!cells.lowest) return {};
    return {cells.lowest->value, cells.highest->value, cells.finite};
  }
  std::pair<double, double> percentiles(Scale scale) const {
    if (scale == Scale::log) return {order.low_positive, order.high_positive};
    return {order.low, order.high};
  }
  std::pair<double, double> mean_sd(Scale scale, const RangeExtent& /*extent*/) const {
    return scale == Scale::log ? log_mean_sd : linear_mean_sd;
  }
  std::optional<double> median_magnitude() const {
    return cells.finite > zeros.zeros ? std::optional(order.median_magnitude) : std::nullopt;
  }
};

namespace {

// Zeros, positive cells and the smallest of these.
void count_signs(const Grid& grid, ZeroCounts& zeros, double& lowest_positive) {
  for_each_row(grid, [&](int, int, const auto* x, int n) {
    using T = std::decay_t<decltype(*x)>;
    constexpr T kNone = std::numeric_limits<T>::infinity();
    T lowest = kNone;
    int n_zero = 0, n_positive = 0;
    for (int i = 0; i < n; ++i) {
      const bool is_positive = x[i] > 0 && x[i] < kNone;
      n_zero += x[i] == 0;
      n_positive += is_positive;
      lowest = is_positive && x[i] < lowest ? x[i] : lowest;
    }
    zeros.zeros += n_zero;
    zeros.positive += n_positive;
    lowest_positive = std::min<double>(lowest_positive, lowest);
  });
}

struct Outside {
  std::int64_t below = 0, above = 0;  // infinities included
};

// The bounds as numbers of the cells' type, so that a comparison of two floats decides.
Outside count_outside(std::span<const Grid> grids, const ValueRange& range) {
  Outside outside;
  for (const Grid& grid : grids)
    for_each_row(grid, [&](int, int, const auto* x, int n) {
      using T = std::decay_t<decltype(*x)>;
      constexpr T kEnd = std::numeric_limits<T>::infinity();
      T lo = static_cast<T>(range.lo), hi = static_cast<T>(range.hi);
      if (static_cast<double>(lo) < range.lo) lo = std::nextafter(lo, kEnd);
      if (static_cast<double>(hi) > range.hi) hi = std::nextafter(hi, -kEnd);
      int below = 0, above = 0;
      for (int i = 0; i < n; ++i) {
        below += x[i] < lo;
        above += x[i] > hi;
      }
      outside.below += below;
      outside.above += above;
    });
  return outside;
}

// Whole bins at the place of their middle.
std::vector<std::int64_t> coarse_histogram(const std::vector<std::int64_t>& bins,
                                           const ValueRange& range, int n) {
  std::vector<std::int64_t> histogram(static_cast<std::size_t>(n), 0);
  for (int bin = 0; bin < kOrderBins; ++bin) {
    if (bins[static_cast<std::size_t>(bin)] == 0) continue;
    const double value = order_value((static_cast<std::uint32_t>(bin) << 16) | 0x8000U);
    const double place = normalized(value, range);
    if (place < 0 || place > 1) continue;
    histogram[std::min(static_cast<std::size_t>(place * n), histogram.size() - 1)] +=
        bins[static_cast<std::size_t>(bin)];
  }
  return histogram;
}

}  // namespace

RangeFinder::RangeFinder(std::vector<Grid> grids) {
  auto numbers = std::make_shared<Numbers>();
  numbers->grids = std::move(grids);
  const std::span<const Grid> all = numbers->grids;
  numbers->cells = count_cells(all);
  for (const Grid& grid : all) count_signs(grid, numbers->zeros, numbers->lowest_positive);
  numbers->order = order_numbers(all, numbers->zeros);
  for (const auto& [scale, bounds] : {std::pair(Scale::linear, &numbers->linear_mean_sd),
                                      std::pair(Scale::log, &numbers->log_mean_sd)}) {
    const RangeExtent extent = numbers->extent(scale);
    if (extent.lo < extent.hi) *bounds = mean_sd_bounds(all, extent, scale);
  }
  numbers_ = std::move(numbers);
}

std::span<const Grid> RangeFinder::grids() const {
  return numbers_ ? std::span<const Grid>(numbers_->grids) : std::span<const Grid>();
}

ValueRange RangeFinder::range(const RangeRequest& request) const {
  if (!numbers_) return find_range(grids(), request);
  return range_by_rules(*numbers_, request);
}

RangeSummary RangeFinder::summary(const ValueRange& range, int bins) const {
  if (!numbers_) return summarize(grids(), range, bins);
  const RangeSummary& cells = numbers_->cells;
  if (cells.finite <= kExactCells || numbers_->order.bins.empty())
    return summarize(grids(), range, bins);
  RangeSummary summary = cells;
  const bool holds_all = range.lo <= cells.lowest->value && cells.highest->value <= range.hi;
  if (!holds_all) {
    const Outside outside = count_outside(grids(), range);
    summary.below = outside.below - cells.minus_inf;
    summary.above = outside.above - cells.plus_inf;
  }
  summary.histogram = coarse_histogram(numbers_->order.bins, range, std::max(bins, 1));
  return summary;
}

}  // namespace sinkscope
