// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/draw/grid_rows.h"
#include "core/draw/range_rules.h"
#include "core/draw/value_range.h"
#include "core/number_text.h"

namespace sinkscope {

namespace {

// Finds the bin of a value within the range: by arithmetic where the axis is linear, else by
// bisection, which costs less than a logarithm.
class Bins {
 public:
  Bins(const ValueRange& range, int n) : range_(range), n_(n) {
    per_unit_ = n / (range.hi - range.lo);
    is_linear_ = range.scale == Scale::linear && std::isfinite(per_unit_) &&
                 std::isfinite(range.hi - range.lo);
    if (is_linear_) return;
    for (int i = 1; i < n; ++i) edges_.push_back(value_at(static_cast<double>(i) / n, range));
  }
  int of(double value) const {
    if (is_linear_) return std::min(static_cast<int>((value - range_.lo) * per_unit_), n_ - 1);
    return static_cast<int>(std::upper_bound(edges_.begin(), edges_.end(), value) - edges_.begin());
  }

 private:
  ValueRange range_;
  int n_;
  double per_unit_ = 0;
  bool is_linear_ = false;
  std::vector<double> edges_;
};

void count_special(RangeSummary& summary, double x) {
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

struct RowExtremes {
  double lowest = 0, highest = 0;
  int finite = 0;
};

template <class T>
RowExtremes extremes_of(const T* x, int n) {
  T lo = std::numeric_limits<T>::max(), hi = std::numeric_limits<T>::lowest();
  int finite = 0;
  for (int i = 0; i < n; ++i) {
    const bool use = x[i] - x[i] == 0;
    lo = use && x[i] < lo ? x[i] : lo;
    hi = use && x[i] > hi ? x[i] : hi;
    finite += use;
  }
  return {lo, hi, finite};
}

// Finite cells of a row, and where the lowest and highest are. Returns how many are finite.
template <class T>
int take_extremes(const T* x, int n, int grid, int row, int first, RangeSummary& summary) {
  const RowExtremes extremes = extremes_of(x, n);
  const auto place = [&](double value) {
    const int col = first + static_cast<int>(std::find(x, x + n, value) - x);
    return CellValue{value, grid, row, col};
  };
  summary.finite += extremes.finite;
  if (extremes.finite == 0) return 0;
  if (!summary.lowest || extremes.lowest < summary.lowest->value)
    summary.lowest = place(extremes.lowest);
  if (!summary.highest || extremes.highest > summary.highest->value)
    summary.highest = place(extremes.highest);
  return extremes.finite;
}

}  // namespace

RangeSummary count_cells(std::span<const Grid> grids) {
  RangeSummary summary;
  for (int g = 0; g < static_cast<int>(grids.size()); ++g)
    for_each_row(grids[g], [&](int row, int first, const auto* x, int n) {
      if (take_extremes(x, n, g, row, first, summary) < n)
        for (int i = 0; i < n; ++i)
          if (!std::isfinite(x[i])) count_special(summary, x[i]);
    });
  return summary;
}

RangeSummary summarize(std::span<const Grid> grids, const ValueRange& range, int bins) {
  RangeSummary summary;
  summary.histogram.assign(std::max(bins, 1), 0);
  const Bins axis(range, std::max(bins, 1));
  for (int g = 0; g < static_cast<int>(grids.size()); ++g)
    for_each_row(grids[g], [&](int row, int first, const auto* x, int n) {
      take_extremes(x, n, g, row, first, summary);
      for (int i = 0; i < n; ++i) {
        if (x[i] >= range.lo && x[i] <= range.hi)
          ++summary.histogram[axis.of(x[i])];
        else if (!std::isfinite(x[i]))
          count_special(summary, x[i]);
        else
          ++(x[i] < range.lo ? summary.below : summary.above);
      }
    });
  return summary;
}

std::string summary_text(const RangeSummary& summary) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : " · ") + part; };
  if (summary.below > 0) add(count_text(summary.below) + " below");
  if (summary.above > 0) add(count_text(summary.above) + " above");
  if (summary.highest && -summary.lowest->value > summary.highest->value)
    add("min " + readable(summary.lowest->value));
  else if (summary.highest)
    add("max " + readable(summary.highest->value));
  if (summary.plus_inf > 0) add(count_text(summary.plus_inf) + " +inf");
  if (summary.minus_inf > 0) add(count_text(summary.minus_inf) + " −inf");
  add(count_text(summary.nan) + " NaN");
  return text;
}

}  // namespace sinkscope
