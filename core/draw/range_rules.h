// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "core/draw/value_range.h"

namespace sinkscope {

// Of the finite cells that count on a scale: all of them, on a log scale the positive ones.
struct RangeExtent {
  double lo = std::numeric_limits<double>::infinity();
  double hi = -std::numeric_limits<double>::infinity();
  std::int64_t count = 0;
};

// Mean ± 3 population standard deviations within the extent; on a log scale of log x.
std::pair<double, double> mean_sd_bounds(std::span<const Grid> grids, const RangeExtent& extent,
                                         Scale scale);
// A summary but for what depends on a range.
RangeSummary count_cells(std::span<const Grid> grids);

namespace range_rules {

inline constexpr double kHuge = std::numeric_limits<double>::max();
inline constexpr double kTiny = std::numeric_limits<double>::min();

inline bool usable(double lo, double hi, Scale scale) {
  return std::isfinite(lo) && std::isfinite(hi) && lo < hi && (scale != Scale::log || lo > 0);
}

void widen_constant(ValueRange& range);
void make_symmetric(ValueRange& range, double center);

template <class Numbers>
std::pair<double, double> bounds(const Numbers& numbers, RangeMode mode, const RangeExtent& extent,
                                 Scale scale) {
  switch (mode) {
    case RangeMode::percentile: {
      const auto [lo, hi] = numbers.percentiles(scale);
      const bool from_zero = scale != Scale::log && extent.lo >= 0 && lo <= hi / 10;
      return {from_zero ? 0 : lo, hi};
    }
    case RangeMode::mean_sd:
      return extent.lo < extent.hi ? numbers.mean_sd(scale, extent)
                                   : std::pair{extent.lo, extent.hi};
    case RangeMode::min_max:
    case RangeMode::fixed:
      break;
  }
  return {extent.lo, extent.hi};
}

// The power of ten below the median of the nonzero |x|; without any, all of the range.
template <class Numbers>
double symlog_threshold(const Numbers& numbers, const ValueRange& range) {
  const double top = std::max(std::abs(range.lo), std::abs(range.hi));
  const std::optional<double> median = numbers.median_magnitude();
  const double typical = median ? std::min(*median, top) : top;
  const double power = std::pow(10.0, std::floor(std::log10(typical)));
  return power > 0 && std::isfinite(power) ? power : top;
}

}  // namespace range_rules

// How a range follows from a few numbers of the cells (the text at find_range). Numbers has
// extent(scale), percentiles(scale) (the 1st and 99th), mean_sd(scale, extent) and
// median_magnitude().
template <class Numbers>
ValueRange range_by_rules(const Numbers& numbers, const RangeRequest& request) {
  ValueRange range;
  range.scale = request.scale;
  if (request.mode == RangeMode::fixed &&
      range_rules::usable(request.lo, request.hi, request.scale)) {
    range.lo = request.lo;
    range.hi = request.hi;
  } else {
    RangeExtent extent = numbers.extent(range.scale);
    if (extent.count == 0 && range.scale == Scale::log) {
      range.scale = Scale::linear;
      extent = numbers.extent(range.scale);
    }
    if (extent.count == 0) {
      range.lo = 0;
      range.hi = 1;
    } else {
      std::tie(range.lo, range.hi) =
          range_rules::bounds(numbers, request.mode, extent, range.scale);
      if (!range_rules::usable(range.lo, range.hi, range.scale)) {
        range.lo = extent.lo;
        range.hi = extent.hi;
      }
      if (range.lo == range.hi) range_rules::widen_constant(range);
    }
  }
  if (request.center && (range.scale != Scale::log || *request.center > 0))
    range_rules::make_symmetric(range, *request.center);
  if (range.scale == Scale::symlog) range.threshold = range_rules::symlog_threshold(numbers, range);
  return range;
}

}  // namespace sinkscope
