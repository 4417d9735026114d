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

}  // namespace sinkscope
