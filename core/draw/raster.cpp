// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/raster.h"

#include <algorithm>
#include <cmath>

#include "core/draw/grid_rows.h"

namespace sinkscope {

// color_of() without its switches in the inner loop: a linear axis is one multiplication, another
// one is a bisection among the values where the color changes.
CellPainter::CellPainter(const ValueRange& range, const Colormap& map) : range_(range), map_(map) {
  steps_ = 256 / (range.hi - range.lo);
  is_linear_ =
      range.scale == Scale::linear && std::isfinite(steps_) && std::isfinite(range.hi - range.lo);
  if (is_linear_) return;
  for (int i = 1; i < 256; ++i) edges_.push_back(value_at(i / 256.0, range));
}

Argb CellPainter::operator()(double value) const {
  if (!(value >= range_.lo && value <= range_.hi)) {
    if (!std::isfinite(value)) return color_of(value, range_, map_);
    return value < range_.lo ? map_.under : map_.over;
  }
  if (is_linear_) return map_.colors[std::min(static_cast<int>((value - range_.lo) * steps_), 255)];
  return map_.colors[std::upper_bound(edges_.begin(), edges_.end(), value) - edges_.begin()];
}

void CellPainter::paint(const PixelRow& row, Argb* out) const {
  for (int i = 0; i < row.cols; ++i) switch (row.kinds[i]) {
      case CellKind::finite:
        out[i] = (*this)(row.values[i]);
        break;
      case CellKind::nan:
        out[i] = map_.nan;
        break;
      case CellKind::plus_inf:
        out[i] = map_.plus_inf;
        break;
      case CellKind::minus_inf:
        out[i] = map_.minus_inf;
        break;
      case CellKind::masked:
        out[i] = 0;
    }
}

Raster color_cells(const Grid& grid, const ValueRange& range, const Colormap& map) {
  Raster raster{grid.cols(), grid.rows(), {}};
  raster.pixels.assign(static_cast<std::size_t>(grid.size()), 0);
  const CellPainter paint(range, map);
  for_each_row(grid, [&](int row, int first, const auto* values, int n) {
    Argb* out = raster.pixels.data() + std::int64_t{row} * grid.cols() + first;
    for (int i = 0; i < n; ++i) out[i] = paint(values[i]);
  });
  return raster;
}

Raster color_cells(const PooledCells& cells, const ValueRange& range, const Colormap& map) {
  Raster raster{cells.cols, cells.rows, {}};
  raster.pixels.resize(cells.values.size());
  const CellPainter painter(range, map);
  for (int r = 0; r < cells.rows; ++r) {
    const std::size_t at = static_cast<std::size_t>(r) * cells.cols;
    painter.paint({r, cells.cols, cells.values.data() + at, cells.kinds.data() + at, false},
                  raster.pixels.data() + at);
  }
  return raster;
}

}  // namespace sinkscope
