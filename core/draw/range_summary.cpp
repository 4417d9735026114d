// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/draw/grid_rows.h"
#include "core/draw/value_range.h"
#include "core/number_text.h"

namespace sinkscope {

namespace {

// Finds the bin of a value: by arithmetic where the axis is linear, else by bisection, which costs
// less than a logarithm.
class Bins {
 public:
  Bins(const ValueRange& range, int n) : range_(range), n_(n) {
    for (int i = 1; i < n; ++i) edges_.push_back(value_at(static_cast<double>(i) / n, range));
  }
  int of(double value) const {
    if (range_.scale == Scale::linear)
      return std::clamp(static_cast<int>(normalized(value, range_) * n_), 0, n_ - 1);
    return static_cast<int>(std::upper_bound(edges_.begin(), edges_.end(), value) - edges_.begin());
  }

 private:
  ValueRange range_;
  int n_;
  std::vector<double> edges_;
};

void count_infinite(RangeSummary& summary, double x) {
  switch (kind_of(x)) {
    case CellKind::nan:
      ++summary.nan;
      break;
    case CellKind::plus_inf:
      ++summary.plus_inf;
      break;
    default:
      ++summary.minus_inf;
  }
}

}  // namespace

RangeSummary summarize(std::span<const Grid> grids, const ValueRange& range, int bins) {
  RangeSummary summary;
  summary.histogram.assign(std::max(bins, 1), 0);
  const Bins axis(range, std::max(bins, 1));
  for (int g = 0; g < static_cast<int>(grids.size()); ++g)
    for_each_row(grids[g], [&](int row, int first, const auto* values, int n) {
      for (int i = 0; i < n; ++i) {
        const double x = values[i];
        if (!std::isfinite(x)) {
          count_infinite(summary, x);
          continue;
        }
        ++summary.finite;
        if (!summary.lowest || x < summary.lowest->value)
          summary.lowest = CellValue{x, g, row, first + i};
        if (!summary.highest || x > summary.highest->value)
          summary.highest = CellValue{x, g, row, first + i};
        if (x < range.lo)
          ++summary.below;
        else if (x > range.hi)
          ++summary.above;
        else
          ++summary.histogram[axis.of(x)];
      }
    });
  return summary;
}

std::string summary_text(const RangeSummary& summary) {
  const auto number = [](std::int64_t n) { return readable(static_cast<double>(n)); };
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : " · ") + part; };
  if (summary.below > 0) add(number(summary.below) + " below");
  if (summary.above > 0) add(number(summary.above) + " above");
  if (summary.highest && -summary.lowest->value > summary.highest->value)
    add("min " + readable(summary.lowest->value));
  else if (summary.highest)
    add("max " + readable(summary.highest->value));
  if (summary.plus_inf > 0) add(number(summary.plus_inf) + " +inf");
  if (summary.minus_inf > 0) add(number(summary.minus_inf) + " −inf");
  add(number(summary.nan) + " NaN");
  return text;
}

}  // namespace sinkscope
