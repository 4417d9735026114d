// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/views/figure/hand_made.h"

#include <limits>

namespace sinkscope::test {
namespace {

FigureAxis cells(const std::string& label, int n, bool downwards) {
  FigureAxis axis;
  axis.label = label;
  axis.low = downwards ? n - 0.5 : -0.5;
  axis.high = downwards ? -0.5 : n - 0.5;
  return axis;
}

ValueRange range(double lo, double hi) {
  ValueRange range;
  range.lo = lo;
  range.hi = hi;
  return range;
}

}  // namespace

Figure map_figure() {
  std::vector<float> values(35);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  Figure figure;
  FigurePanel panel;
  panel.title = "Seven by five";
  panel.x = cells("Key tokens", 7, false);
  panel.y = cells("Query tokens", 5, true);
  for (int i = 0; i < 7; i += 2) panel.x.ticks.push_back({double(i), std::to_string(100 + i)});
  for (int i = 0; i < 5; i += 2) panel.y.ticks.push_back({double(i), std::to_string(i)});
  panel.height_ratio = 5.0 / 7;
  panel.maps = {{Grid(5, 7, values), 0, false, false}};
  panel.has_color_bar = true;
  panel.boxes = {{FigureBox::Place::top_right, 0, 0, {"Score 0.25"}}};
  figure.panels = {panel};
  figure.colors = {{"probability", range(0, 34), colormap("Blues"), {}, ""}};
  figure.notes = {{"The convention in words.", false}};
  return figure;
}

Figure plain_map(int rows, int columns) {
  std::vector<float> values(static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>((i * 7919) % 251);
  Figure figure;
  FigurePanel panel;
  panel.x = cells("", columns, false);
  panel.y = cells("", rows, true);
  panel.maps = {{Grid(rows, columns, values), 0, false, false}};
  panel.height_ratio = static_cast<double>(rows) / columns;
  figure.panels = {panel};
  figure.colors = {{"", range(0, 250), colormap("viridis"), {}, ""}};
  return figure;
}

Figure line_figure() {
  Figure figure;
  FigurePanel lines;
  lines.title = "Lines";
  lines.x = {"layer", 0, 4, false, false, {{0, "0"}, {2, "2"}, {4, "4"}}, {}};
  lines.y = {"max |x|", 1, 10000, true, false, {{1, "1"}, {100, "100"}, {10000, "10,000"}}, {}};
  lines.height_ratio = 0.5;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  lines.series = {{"first", FigureSeries::Style::line, 0, {0, 1, 2, 3, 4}, {1, 10, 100, 100, 10}},
                  {"gap", FigureSeries::Style::dashed, 1, {0, 1, 2, 3, 4}, {2, nan, 50, 60, 70}}};
  FigurePanel bars;
  bars.title = "Bars";
  bars.x = {"key", -0.5, 2.5, false, false, {{0, "0"}, {1, "1"}, {2, "2"}}, {"<s>", "a,b", "c"}};
  bars.y = {"mass", 0, 1, false, false, {{0, "0"}, {0.5, "0.5"}, {1, "1"}}, {}};
  bars.height_ratio = 0.4;
  bars.series = {{"", FigureSeries::Style::bars, 2, {0, 1, 2}, {1, 0.5, 0.25}}};
  figure.panels = {lines, bars};
  return figure;
}

}  // namespace sinkscope::test
