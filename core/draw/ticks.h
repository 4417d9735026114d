// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "core/draw/value_range.h"

namespace sinkscope {

// A tick at a position of its axis: for cells the center of the cell (index + 0.5), for values the
// place on the color axis, 0..1.
struct Tick {
  double position = 0;
  std::string label;
  bool starred = false;
  bool operator==(const Tick&) const = default;
};

// Multiples of 1, 2 or 5 times a power of ten within [lo, hi], at most `at_most` of them.
std::vector<double> nice_values(double lo, double hi, int at_most);

// Ticks of a color axis with their labels, at most `at_most`: nice numbers; powers of ten (and 2
// and 5 times them when the range is narrow) on a log scale; ±powers and 0 on symlog.
std::vector<Tick> value_ticks(const ValueRange& range, int at_most);

// Which of `n` cells to label when the cells from `first` to `last` (inclusive) are visible and
// labels must lie `step` or more cells apart: 0 and multiples of 1, 2 or 5 times a power of ten.
// So the labels stay at their cells while the view moves.
std::vector<int> tick_cells(int first, int last, double step);

// The same with cells that come first (starred dimensions): each of them that is visible, then
// the others that keep the distance to them.
std::vector<int> tick_cells(int first, int last, double step, const std::vector<int>& first_of_all);

// "0.25", "25,000", "1e-05": as many decimals as the step between ticks asks for.
std::string tick_text(double value, double step);
// For a single number without neighbors: "100", "0.01", "1e-06".
std::string tick_text(double value);

}  // namespace sinkscope
