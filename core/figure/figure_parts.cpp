// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figure/figure_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/draw/ticks.h"
#include "core/error.h"
#include "core/number_text.h"

namespace sinkscope {
namespace {

// Candidates at every cell would be slow for wide maps; the painter thins them further.
constexpr int kMostTicks = 64;
constexpr double kColumnMm = 85, kTextMm = 170, kRoomMm = 50;

std::vector<FigureTick> cell_ticks(int n, const std::vector<std::string>& names) {
  std::vector<FigureTick> ticks;
  if (names.empty()) {
    for (const int cell : tick_cells(0, n - 1, std::max(1.0, n / 8.0)))
      ticks.push_back({static_cast<double>(cell), std::to_string(cell), false});
    return ticks;
  }
  const int step = std::max(1, n / kMostTicks);
  for (int cell = 0; cell < n; cell += step)
    ticks.push_back({static_cast<double>(cell), names[static_cast<std::size_t>(cell)], false});
  return ticks;
}

FigureAxis cell_axis(const std::string& label, int n, std::vector<std::string> names) {
  FigureAxis axis;
  axis.label = label;
  axis.ticks = cell_ticks(n, names);
  axis.names = std::move(names);
  return axis;
}

std::vector<FigureTick> value_axis_ticks(double low, double high, bool is_log) {
  ValueRange range;
  range.lo = low;
  range.hi = high;
  range.scale = is_log ? Scale::log : Scale::linear;
  std::vector<FigureTick> ticks;
  for (const Tick& tick : value_ticks(range, 6))
    ticks.push_back({value_at(tick.position, range), tick.label, false});
  return ticks;
}

// Nothing to say where every cell has its color.
std::string range_note(const FigureColors& colors, const RangeRequest& asked) {
  const RangeSummary& summary = colors.summary;
  if (summary.above + summary.below + summary.nan + summary.plus_inf + summary.minus_inf == 0)
    return {};
  return fmt::format("{}: {}; {}.", colors.label, range_mode_label(asked.mode),
                     summary_text(summary));
}

RangeRequest asked_range(const FigureRequest& request, const MapColors& defaults) {
  RangeRequest range = request.range ? *request.range : defaults.range;
  range.scale = request.scale ? *request.scale : defaults.range.scale;
  range.center = defaults.range.center;
  if (request.range && request.range->mode == RangeMode::fixed) range.center.reset();
  if (range.scale != Scale::log && defaults.range.scale == Scale::log) range.center.reset();
  return range;
}

}  // namespace

FigureAxis column_axis(const std::string& label, int n, std::vector<std::string> names) {
  FigureAxis axis = cell_axis(label, n, std::move(names));
  set_fixed_range(axis, -0.5, n - 0.5);
  return axis;
}

FigureAxis row_axis(const std::string& label, int n, std::vector<std::string> names) {
  FigureAxis axis = cell_axis(label, n, std::move(names));
  set_fixed_range(axis, n - 0.5, -0.5);
  return axis;
}

FigureAxis index_axis(const std::string& label, int n, std::vector<std::string> names) {
  return column_axis(label, n, std::move(names));
}

void set_fixed_range(FigureAxis& axis, double low, double high) {
  axis.low = low;
  axis.high = high;
}

std::vector<std::string> names_of(const std::vector<int>& numbers) {
  std::vector<std::string> names;
  for (const int number : numbers) names.push_back(std::to_string(number));
  return names;
}

FigureAxis value_axis(const FigureRequest& request, const ValueAxis& defaults,
                      const std::vector<FigureSeries>& series) {
  FigureAxis axis;
  axis.label = defaults.label;
  axis.is_log = request.scale.value_or(defaults.scale) != Scale::linear;
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const FigureSeries& one : series)
    for (const double y : one.y) {
      if (!std::isfinite(y) || (axis.is_log && y <= 0)) continue;
      low = std::min(low, y);
      high = std::max(high, y);
    }
  if (low > high) low = axis.is_log ? 0.1 : 0, high = 1;
  const bool is_fixed = request.range && request.range->mode == RangeMode::fixed &&
                        request.range->lo < request.range->hi &&
                        !(axis.is_log && request.range->lo <= 0);
  if (is_fixed) {
    set_fixed_range(axis, request.range->lo, request.range->hi);
  } else if (axis.is_log) {
    const double air = std::max(1.1, std::pow(high / low, 0.04));
    set_fixed_range(axis, low / air, high * air);
  } else {
    const bool stands_on_zero = defaults.from_zero && low >= 0;
    const double air = high > low ? 0.05 * (high - low) : 0.5;
    set_fixed_range(axis, stands_on_zero ? 0 : low - air, high + air);
  }
  axis.ticks = value_axis_ticks(axis.low, axis.high, axis.is_log);
  return axis;
}

void share_value_axis(Figure& figure, const FigureRequest& request, const ValueAxis& defaults) {
  std::vector<FigureSeries> all;
  for (FigurePanel& panel : figure.panels) {
    panel.y = value_axis(request, defaults, panel.series);
    all.insert(all.end(), panel.series.begin(), panel.series.end());
  }
  if (request.range_each) {
    if (figure.panels.size() > 1)
      figure.notes.push_back({"Every panel has its own value axis.", true});
    return;
  }
  const FigureAxis shared = value_axis(request, defaults, all);
  for (FigurePanel& panel : figure.panels) panel.y = shared;
}

FigurePanel map_panel(const std::string& title, const Grid& grid, FigureAxis x, FigureAxis y) {
  FigurePanel panel;
  panel.title = title;
  panel.x = std::move(x);
  panel.y = std::move(y);
  panel.maps.push_back({grid, 0, false, false});
  panel.height_ratio =
      grid.empty() ? 1 : std::clamp(static_cast<double>(grid.rows()) / grid.cols(), 0.4, 1.1);
  return panel;
}

RangeRequest fixed_range(double lo, double hi) {
  RangeRequest range;
  range.mode = RangeMode::fixed;
  range.lo = lo;
  range.hi = hi;
  return range;
}

void arrange(Figure& figure, const FigureRequest& request, int preferred) {
  figure.title = request.title.value_or("");
  figure.panel_labels = request.panel_labels;
  figure.font_pt = request.font_pt;
  const int most = request.width_mm ? static_cast<int>(*request.width_mm / kRoomMm) : 3;
  figure.n_columns = request.n_columns.value_or(std::clamp(preferred, 1, std::max(1, most)));
  figure.width_mm = request.width_mm.value_or(
      std::min<std::size_t>(figure.panels.size(), static_cast<std::size_t>(figure.n_columns)) > 1
          ? kTextMm
          : kColumnMm);
}

void color_maps(Figure& figure, const FigureRequest& request, const MapColors& defaults,
                std::size_t first) {
  const RangeRequest asked = asked_range(request, defaults);
  const Colormap map = colormap(request.colormap.empty() ? defaults.colormap : request.colormap);
  const auto n_columns = static_cast<std::size_t>(std::max(1, figure.n_columns));
  std::vector<std::size_t> panels;
  std::vector<Grid> grids;
  for (std::size_t i = first; i < figure.panels.size(); ++i)
    if (!figure.panels[i].maps.empty()) {
      panels.push_back(i);
      grids.push_back(figure.panels[i].maps.front().grid);
    }
  const bool nan_is_paper =
      !panels.empty() && figure.panels[panels.front()].maps.front().nan_is_paper;
  const auto add = [&](std::span<const Grid> of) {
    FigureColors colors{defaults.label, find_range(of, asked), map, {}, {}};
    if (defaults.from_zero && !request.range && colors.range.scale == Scale::linear &&
        colors.range.hi > 0)
      colors.range.lo = 0;
    colors.summary = summarize(of, colors.range);
    if (nan_is_paper) colors.summary.nan = 0;
    figure.colors.push_back(colors);
    return static_cast<int>(figure.colors.size()) - 1;
  };
  const bool is_shared = !request.range_each || panels.size() < 2;
  if (is_shared) add(grids);
  for (std::size_t i = 0; i < panels.size(); ++i) {
    FigurePanel& panel = figure.panels[panels[i]];
    if (!is_shared) add({&grids[i], 1});
    panel.maps.front().colors = static_cast<int>(figure.colors.size()) - 1;
    panel.has_color_bar =
        !is_shared || (panels[i] + 1) % n_columns == 0 || panels[i] + 1 == figure.panels.size();
  }
  if (is_shared && !panels.empty()) {
    const std::string note = range_note(figure.colors.back(), asked);
    if (!note.empty()) add_note(figure, note);
  } else if (!is_shared) {
    figure.notes.push_back({"Every panel has its own color range.", true});
  }
}

Grid cropped(const Grid& grid, int rows, int cols) {
  rows = std::min(rows, grid.rows());
  cols = std::min(cols, grid.cols());
  std::vector<double> values;
  std::vector<CellSpan> spans;
  for (int row = 0; row < rows; ++row) {
    for (int col = 0; col < cols; ++col) values.push_back(grid.at(row, col));
    const CellSpan span = grid.span(row);
    spans.push_back({std::min(span.begin, cols), std::min(span.end, cols)});
  }
  const Grid part(rows, cols, std::move(values));
  return grid.has_spans() ? part.with_spans(std::move(spans)) : part;
}

const CaptureReader& capture_of(const FigureInput& input) {
  if (input.capture == nullptr)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{}: expected a capture, found a model; sinkscope capture makes one",
                            input.name));
  return *input.capture;
}

std::string panel_title(const FigureInput& input, const std::string& what) {
  return input.name.empty() ? what : input.name + ": " + what;
}

void add_note(Figure& figure, const std::string& text) { figure.notes.push_back({text, false}); }

}  // namespace sinkscope
