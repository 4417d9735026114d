// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/draw/grid.h"

namespace sinkscope {

enum class RangeMode { min_max, percentile, mean_sd, fixed };
enum class Scale { linear, log, symlog };

// How a color range is to be chosen. Text: "minmax", "percentile", "meansd" or "LO,HI".
struct RangeRequest {
  RangeMode mode = RangeMode::percentile;
  double lo = 0, hi = 1;  // of a fixed range
  Scale scale = Scale::linear;
  // Makes the range symmetric about this value, for diverging maps: by difference, on a log scale
  // by ratio (then it is positive).
  std::optional<double> center = {};
  bool operator==(const RangeRequest&) const = default;
};

// A range that can be drawn: lo < hi, both finite, on a log scale lo > 0.
struct ValueRange {
  double lo = 0, hi = 1;
  Scale scale = Scale::linear;
  double threshold = 1;  // symlog: linear within ±threshold, logarithmic beyond
  std::optional<double> center = {};
  bool operator==(const ValueRange&) const = default;
};

// One range for all grids (what is compared shares it), from their finite cells:
//   min_max     the smallest and largest value
//   percentile  the 1st and 99th percentile by nearest rank: the value of rank ⌈p·n⌉, exact, by
//               histograms of ordered bit patterns (core/draw/order_statistics.h). Where nothing is
//               negative and the lower one is at most a tenth of the upper one, from 0: what is
//               close to nothing (probabilities, |x|) is not out of range
//   mean_sd     mean ± 3 population standard deviations (on a log scale those of log x over the
//               positive values, so that both limits are positive), cut to the smallest and largest
//               value that counts
//   fixed       as asked; lo ≥ hi falls back to min_max
// On a log scale only positive values count, the others are below the range (summarize counts them
// there); with none that is positive the scale falls back to linear.
// symlog is linear up to the power of ten below the median of the nonzero |x|.
// A range without extent is widened: to min–max, for constant data by |value|/2 to both sides
// (0: by 1). No finite cell at all: 0..1.
ValueRange find_range(std::span<const Grid> grids, const RangeRequest& request);
ValueRange find_range(const Grid& grid, const RangeRequest& request);

// Where a value lies on the color axis: 0 at lo, 1 at hi, beyond for values out of range. In
// double, without overflow for any finite range. On a log scale nonpositive values are −infinity.
double normalized(double value, const ValueRange& range);
// The inverse for 0 ≤ position ≤ 1.
double value_at(double position, const ValueRange& range);

struct CellValue {
  double value = 0;
  int grid = 0, row = 0, col = 0;
};

// What a color bar says about the cells beside the range. `lowest` and `highest` are the true
// extremes of the finite cells, whatever the range.
struct RangeSummary {
  std::int64_t finite = 0, below = 0, above = 0, nan = 0, plus_inf = 0, minus_inf = 0;
  std::optional<CellValue> lowest, highest;
  // Finite cells within the range, in equal steps of the color axis from lo to hi.
  std::vector<std::int64_t> histogram;
};
RangeSummary summarize(std::span<const Grid> grids, const ValueRange& range, int bins = 64);

// "17 above · max 25,804.7 · 0 NaN"; what is zero is left out but for NaN.
std::string summary_text(const RangeSummary& summary);

// Text forms. Parsing throws Error{invalid_argument} that lists what is possible.
RangeRequest parse_range_request(std::string_view range, std::string_view scale = "linear");
std::string range_text(const RangeRequest& request);  // "percentile" or "0,1"
Scale parse_scale(std::string_view text);
std::string_view scale_text(Scale scale);
// For people: "percentile 1–99".
std::string_view range_mode_label(RangeMode mode);

}  // namespace sinkscope
