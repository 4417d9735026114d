// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/value_range.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/draw/grid_rows.h"
#include "core/draw/order_statistics.h"
#include "core/draw/range_rules.h"

namespace sinkscope {

namespace {

bool counts(double x, Scale scale) { return scale == Scale::log ? x > 0 : true; }

RangeExtent extent_of(std::span<const Grid> grids, Scale scale) {
  RangeExtent extent;
  for (const Grid& grid : grids)
    for_each_row(grid, [&](int, int, const auto* x, int n) {
      auto lo = std::numeric_limits<std::decay_t<decltype(*x)>>::infinity(), hi = -lo;
      int counted = 0;
      for (int i = 0; i < n; ++i) {
        const bool use = x[i] - x[i] == 0 && counts(x[i], scale);
        lo = use && x[i] < lo ? x[i] : lo;
        hi = use && x[i] > hi ? x[i] : hi;
        counted += use;
      }
      extent.lo = std::min<double>(extent.lo, lo);
      extent.hi = std::max<double>(extent.hi, hi);
      extent.count += counted;
    });
  return extent;
}

double symlog(double x, double threshold) {
  const double ratio = std::abs(x) / threshold;
  return std::copysign(ratio <= 1 ? ratio : 1 + std::log10(ratio), x);
}

double symlog_inverse(double y, double threshold) {
  const double size = std::abs(y);
  return std::copysign(threshold * (size <= 1 ? size : std::pow(10.0, size - 1)), y);
}

// The numbers of a range, each found by passes of its own when it is asked for.
struct PassingNumbers {
  std::span<const Grid> grids;

  RangeExtent extent(Scale scale) const { return extent_of(grids, scale); }
  std::pair<double, double> percentiles(Scale scale) const {
    const OrderStatistics order(grids, scale == Scale::log ? Counted::positive : Counted::all);
    return {order.quantile(0.01), order.quantile(0.99)};
  }
  std::pair<double, double> mean_sd(Scale scale, const RangeExtent& extent) const {
    return mean_sd_bounds(grids, extent, scale);
  }
  std::optional<double> median_magnitude() const {
    const OrderStatistics order(grids, Counted::nonzero_magnitude);
    return order.count() > 0 ? std::optional(order.quantile(0.5)) : std::nullopt;
  }
};

}  // namespace

// In units of the largest magnitude, so that squares of 1e300 stay finite. On a log scale the mean
// and deviation are those of log x.
std::pair<double, double> mean_sd_bounds(std::span<const Grid> grids, const RangeExtent& extent,
                                         Scale scale) {
  const double unit = std::max(std::abs(extent.lo), std::abs(extent.hi));
  const auto in_units = [&](double x) { return scale == Scale::log ? std::log(x) : x / unit; };
  const auto each = [&](auto&& f) {
    for (const Grid& grid : grids)
      for_each_row(grid, [&](int, int, const auto* x, int n) {
        for (int i = 0; i < n; ++i)
          if (std::isfinite(x[i]) && counts(x[i], scale)) f(in_units(x[i]));
      });
  };
  const auto n = static_cast<double>(extent.count);
  double sum = 0, squares = 0;
  each([&](double x) { sum += x; });
  const double mean = sum / n;
  each([&](double x) { squares += (x - mean) * (x - mean); });
  const double reach = 3 * std::sqrt(squares / n);
  const auto back = [&](double x) {
    return std::clamp(scale == Scale::log ? std::exp(x) : x * unit, extent.lo, extent.hi);
  };
  return {back(mean - reach), back(mean + reach)};
}

namespace range_rules {

void widen_constant(ValueRange& range) {
  const double value = range.lo, reach = value == 0 ? 1 : std::abs(value) / 2;
  range.lo = std::max(value - reach, -kHuge);
  range.hi = std::min(value + reach, kHuge);
  if (range.lo < range.hi && value - range.lo > kTiny) return;
  // Among the denormals half of a value is nothing.
  range.lo = range.scale == Scale::log ? kTiny : value - kTiny;
  range.hi = range.lo + 2 * kTiny;
}

void make_symmetric(ValueRange& range, double center) {
  range.center = center;
  if (range.scale == Scale::log) {
    const double ratio = std::max(range.hi / center, center / range.lo);
    range.lo = std::max(center / ratio, kTiny);
    range.hi = std::min(center * ratio, kHuge);
    return;
  }
  const double reach = std::max(std::abs(range.lo - center), std::abs(range.hi - center));
  range.lo = std::max(center - reach, -kHuge);
  range.hi = std::min(center + reach, kHuge);
}

}  // namespace range_rules

ValueRange find_range(std::span<const Grid> grids, const RangeRequest& request) {
  return range_by_rules(PassingNumbers{grids}, request);
}

ValueRange find_range(const Grid& grid, const RangeRequest& request) {
  return find_range({&grid, 1}, request);
}

double normalized(double value, const ValueRange& range) {
  switch (range.scale) {
    case Scale::log: {
      if (value <= 0) return -std::numeric_limits<double>::infinity();
      const double lo = std::log(range.lo);
      return (std::log(value) - lo) / (std::log(range.hi) - lo);
    }
    case Scale::symlog: {
      const double lo = symlog(range.lo, range.threshold);
      return (symlog(value, range.threshold) - lo) / (symlog(range.hi, range.threshold) - lo);
    }
    case Scale::linear:
      break;
  }
  const double extent = range.hi - range.lo;
  if (std::isfinite(extent)) return (value - range.lo) / extent;
  return (value / 4 - range.lo / 4) / (range.hi / 4 - range.lo / 4);
}

double value_at(double position, const ValueRange& range) {
  switch (range.scale) {
    case Scale::log:
      return std::exp(std::lerp(std::log(range.lo), std::log(range.hi), position));
    case Scale::symlog:
      return symlog_inverse(
          std::lerp(symlog(range.lo, range.threshold), symlog(range.hi, range.threshold), position),
          range.threshold);
    case Scale::linear:
      break;
  }
  return std::lerp(range.lo, range.hi, position);
}

}  // namespace sinkscope
