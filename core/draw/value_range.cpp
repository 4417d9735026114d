// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/value_range.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

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

namespace {

// ln x for finite x > 0 that is no denormal, to 1e-12: a table over the first seven bits of the
// mantissa and four terms of the series behind it. A third of std::log's time, which large maps
// feel.
class Logarithm {
 public:
  Logarithm() {
    for (int k = 0; k < kSteps; ++k) {
      const double middle = 1 + (k + 0.5) / kSteps;
      inverse_[k] = 1 / middle;
      log_[k] = std::log(middle);
    }
  }
  double operator()(double x) const {
    const auto bits = std::bit_cast<std::uint64_t>(x);
    const auto k = static_cast<std::size_t>((bits >> (52 - kBits)) & (kSteps - 1));
    const double mantissa = std::bit_cast<double>((bits & kMantissa) | kOne);
    const double r = mantissa * inverse_[k] - 1;
    const auto exponent = static_cast<double>(static_cast<int>(bits >> 52) - 1023);
    return exponent * std::numbers::ln2 + log_[k] + r * (1 - r * (0.5 - r * (1.0 / 3 - r * 0.25)));
  }

 private:
  static constexpr int kBits = 7, kSteps = 1 << kBits;
  static constexpr std::uint64_t kMantissa = (std::uint64_t{1} << 52) - 1,
                                 kOne = std::uint64_t{1023} << 52;
  std::array<double, kSteps> inverse_{}, log_{};
};

// In units of the largest magnitude, so that squares of 1e300 stay finite.
std::pair<double, double> linear_mean_sd(std::span<const Grid> grids, const RangeExtent& extent) {
  const double unit = std::max(std::abs(extent.lo), std::abs(extent.hi));
  const auto each = [&](auto&& f) {
    for (const Grid& grid : grids)
      for_each_row(grid, [&](int, int, const auto* x, int n) {
        for (int i = 0; i < n; ++i)
          if (std::isfinite(x[i])) f(x[i] / unit);
      });
  };
  const auto n = static_cast<double>(extent.count);
  double sum = 0, squares = 0;
  each([&](double x) { sum += x; });
  const double mean = sum / n;
  each([&](double x) { squares += (x - mean) * (x - mean); });
  const double reach = 3 * std::sqrt(squares / n);
  return {(mean - reach) * unit, (mean + reach) * unit};
}

// One pass, around the middle of the extent, where squares stay small beside the deviation's.
std::pair<double, double> log_mean_sd(std::span<const Grid> grids, const RangeExtent& extent) {
  static const Logarithm ln;
  const double at_middle =
      std::max(std::sqrt(extent.lo) * std::sqrt(extent.hi), range_rules::kTiny);
  const double middle = ln(at_middle);
  double sum = 0, squares = 0;
  std::vector<double> counting;
  for (const Grid& grid : grids)
    for_each_row(grid, [&](int, int, const auto* x, int n) {
      // What counts is moved together first: a branch would be slow where signs are random.
      counting.resize(static_cast<std::size_t>(n) + 1);
      std::size_t m = 0;
      for (int i = 0; i < n; ++i) {
        counting[m] = x[i];
        m += static_cast<std::size_t>((x[i] > 0) & (x[i] - x[i] == 0));
      }
      for (std::size_t i = 0; i < m; ++i) {
        const double d = ln(std::max(counting[i], range_rules::kTiny)) - middle;
        sum += d;
        squares += d * d;
      }
    });
  const auto n = static_cast<double>(extent.count);
  const double mean = sum / n;
  const double reach = 3 * std::sqrt(std::max(0.0, squares / n - mean * mean));
  return {std::exp(middle + mean - reach), std::exp(middle + mean + reach)};
}

}  // namespace

std::pair<double, double> mean_sd_bounds(std::span<const Grid> grids, const RangeExtent& extent,
                                         Scale scale) {
  const auto [lo, hi] =
      scale == Scale::log ? log_mean_sd(grids, extent) : linear_mean_sd(grids, extent);
  return {std::clamp(lo, extent.lo, extent.hi), std::clamp(hi, extent.lo, extent.hi)};
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
