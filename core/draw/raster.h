// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

#include "core/draw/colormap.h"
#include "core/draw/grid.h"
#include "core/draw/pyramid.h"

namespace sinkscope {

// Pixels, row-major, top row first. Masked cells are 0: transparent.
struct Raster {
  int width = 0, height = 0;
  std::vector<Argb> pixels;

  Argb at(int x, int y) const { return pixels[static_cast<std::size_t>(y) * width + x]; }
};

// One pixel a cell: what a figure embeds losslessly.
Raster color_cells(const Grid& grid, const ValueRange& range, const Colormap& map);
// One pixel a pooled cell: what a screen shows.
Raster color_cells(const PooledCells& cells, const ValueRange& range, const Colormap& map);

// The color of many values under one range, faster than color_of() one by one. Keeps references.
class CellPainter {
 public:
  CellPainter(const ValueRange& range, const Colormap& map);
  Argb operator()(double value) const;
  // out [row.cols], masked cells transparent.
  void paint(const PixelRow& row, Argb* out) const;

 private:
  const ValueRange& range_;
  const Colormap& map_;
  double steps_ = 0;
  bool is_linear_ = false;
  std::vector<double> edges_;  // where the color changes, on another scale
};

}  // namespace sinkscope
