// SPDX-License-Identifier: GPL-3.0-or-later
// A part of each map, after its colors were found: what a zoomed window shows.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/draw/ticks.h"
#include "core/error.h"
#include "core/figure/figure_parts.h"

namespace sinkscope {
namespace {

Grid part_of(const Grid& grid, const FigureView& view) {
  std::vector<double> values;
  std::vector<CellSpan> spans;
  const int width = view.right - view.left;
  for (int row = view.top; row < view.bottom; ++row) {
    for (int col = view.left; col < view.right; ++col) values.push_back(grid.at(row, col));
    const CellSpan span = grid.span(row);
    const int begin = std::clamp(span.begin - view.left, 0, width);
    spans.push_back({begin, std::clamp(span.end - view.left, begin, width)});
  }
  const Grid part(view.bottom - view.top, width, std::move(values));
  return grid.has_spans() ? part.with_spans(std::move(spans)) : part;
}

// Cells [from, to) of an axis; what they are called stays.
FigureAxis part_of(const FigureAxis& axis, int from, int to, bool is_row) {
  const int n = to - from;
  FigureAxis part = axis;
  set_fixed_range(part, is_row ? n - 0.5 : -0.5, is_row ? -0.5 : n - 0.5);
  part.names.clear();
  for (int cell = from; cell < to; ++cell)
    part.names.push_back(axis.names.empty() ? std::to_string(cell)
                                            : axis.names[static_cast<std::size_t>(cell)]);
  std::vector<int> ticked(static_cast<std::size_t>(n));
  std::iota(ticked.begin(), ticked.end(), from);
  if (axis.names.empty()) ticked = tick_cells(from, to - 1, std::max(1.0, n / 8.0));
  part.ticks.clear();
  for (const int cell : ticked)
    part.ticks.push_back({static_cast<double>(cell - from),
                          part.names[static_cast<std::size_t>(cell - from)], false});
  for (const FigureTick& tick : axis.ticks)
    if (tick.starred && tick.at >= from && tick.at < to)
      part.ticks.push_back({tick.at - from, tick.text, true});
  return part;
}

void crop(FigurePanel& panel, const FigureView& view) {
  panel.x = part_of(panel.x, view.left, view.right, false);
  panel.y = part_of(panel.y, view.top, view.bottom, true);
  panel.maps.front().grid = part_of(panel.maps.front().grid, view);
  std::erase_if(panel.boxes, [&](const FigureBox& box) {
    return box.place == FigureBox::Place::beside_point &&
           (box.x < view.left || box.x >= view.right || box.y < view.top || box.y >= view.bottom);
  });
  for (FigureBox& box : panel.boxes) {
    if (box.place != FigureBox::Place::beside_point) continue;
    box.x -= view.left;
    box.y -= view.top;
  }
}

}  // namespace

void crop_to_view(Figure& figure, const FigureView& view) {
  bool has_map = false, is_cut = false;
  for (FigurePanel& panel : figure.panels) {
    if (panel.maps.empty()) continue;
    has_map = true;
    const Grid& grid = panel.maps.front().grid;
    const FigureView own{view.top, std::min(view.bottom, grid.rows()), view.left,
                         std::min(view.right, grid.cols())};
    if (own.top >= own.bottom || own.left >= own.right)
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("--view: row {} and column {} are not in a map of {} × {} cells",
                              view.top, view.left, grid.rows(), grid.cols()));
    is_cut = is_cut || own != FigureView{0, grid.rows(), 0, grid.cols()};
    crop(panel, own);
  }
  if (!has_map)
    throw Error(ErrorKind::invalid_argument, "--view: this kind of figure draws no map");
  if (is_cut)
    add_note(figure, fmt::format("Part of the map: rows {} to {}, columns {} to {}; ranges and "
                                 "counts are those of all of it.",
                                 view.top, view.bottom - 1, view.left, view.right - 1));
}

}  // namespace sinkscope
