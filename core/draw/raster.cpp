// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/raster.h"

#include <algorithm>
#include <cmath>

#include "core/draw/grid_rows.h"

namespace sinkscope {

namespace {

// color_of() without its switches in the inner loop: a linear axis is one multiplication, another
// one is a bisection among the values where the color changes.
class Painter {
 public:
  Painter(const ValueRange& range, const Colormap& map) : range_(range), map_(map) {
    steps_ = 256 / (range.hi - range.lo);
    is_linear_ =
        range.scale == Scale::linear && std::isfinite(steps_) && std::isfinite(range.hi - range.lo);
    if (is_linear_) return;
    for (int i = 1; i < 256; ++i) edges_.push_back(value_at(i / 256.0, range));
  }

  Argb operator()(double value) const {
    if (!(value >= range_.lo && value <= range_.hi)) return color_of(value, range_, map_);
    if (is_linear_)
      return map_.colors[std::min(static_cast<int>((value - range_.lo) * steps_), 255)];
    return map_.colors[std::upper_bound(edges_.begin(), edges_.end(), value) - edges_.begin()];
  }

 private:
  const ValueRange& range_;
  const Colormap& map_;
  double steps_ = 0;
  bool is_linear_ = false;
  std::vector<double> edges_;
};

}  // namespace

Raster color_cells(const Grid& grid, const ValueRange& range, const Colormap& map) {
  Raster raster{grid.cols(), grid.rows(), {}};
  raster.pixels.assign(static_cast<std::size_t>(grid.size()), 0);
  const Painter paint(range, map);
  for_each_row(grid, [&](int row, int first, const auto* values, int n) {
    Argb* out = raster.pixels.data() + std::int64_t{row} * grid.cols() + first;
    for (int i = 0; i < n; ++i) out[i] = paint(values[i]);
  });
  return raster;
}

Raster color_cells(const PooledCells& cells, const ValueRange& range, const Colormap& map) {
  Raster raster{cells.cols, cells.rows, {}};
  raster.pixels.assign(cells.values.size(), 0);
  const Painter paint(range, map);
  for (std::size_t i = 0; i < cells.values.size(); ++i) switch (cells.kinds[i]) {
      case CellKind::finite:
        raster.pixels[i] = paint(cells.values[i]);
        break;
      case CellKind::nan:
        raster.pixels[i] = map.nan;
        break;
      case CellKind::plus_inf:
        raster.pixels[i] = map.plus_inf;
        break;
      case CellKind::minus_inf:
        raster.pixels[i] = map.minus_inf;
        break;
      case CellKind::masked:
        break;
    }
  return raster;
}

}  // namespace sinkscope
