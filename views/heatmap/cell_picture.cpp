// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/heatmap/cell_picture.h"

#include <cstring>

#include "core/draw/raster.h"

namespace sinkscope {

namespace {

constexpr int kHatch = 6, kDots = 4;  // pixels

Argb darker(Argb color) {
  Argb result = 0xFF;
  for (int shift = 16; shift >= 0; shift -= 8)
    result = result << 8 | ((color >> shift & 0xFF) * 5 / 8);
  return result;
}

Argb contrasting(Argb color) { return ok_lab(color).l > 0.6 ? 0xFF000000U : 0xFFFFFFFFU; }

void mark_special(const PooledCells& cells, const Colormap& map, Raster& raster) {
  const Argb line = darker(map.nan);
  const Argb plus = contrasting(map.plus_inf), minus = contrasting(map.minus_inf);
  for (int y = 0; y < raster.height; ++y)
    for (int x = 0; x < raster.width; ++x) {
      const std::size_t i = static_cast<std::size_t>(y) * raster.width + x;
      const CellKind kind = cells.kinds[i];
      if (kind == CellKind::nan && (x + y) % kHatch < 2) raster.pixels[i] = line;
      if (kind == CellKind::plus_inf && x % kDots == 0 && y % kDots == 0) raster.pixels[i] = plus;
      if (kind == CellKind::minus_inf && x % kDots == 0 && y % kDots == 0) raster.pixels[i] = minus;
    }
}

void color_highlighted(const PooledCells& cells, const Highlight& highlight, Raster& raster) {
  for (std::size_t i = 0; i < raster.pixels.size(); ++i)
    if (cells.kinds[i] == CellKind::finite && cells.values[i] > highlight.above)
      raster.pixels[i] = highlight.color;
}

bool any_special(const PooledCells& cells) {
  for (const CellKind kind : cells.kinds)
    if (kind != CellKind::finite && kind != CellKind::masked) return true;
  return false;
}

}  // namespace

CellPicture paint_cells(const HeatmapScene& scene, const ValueRange& range, const Colormap& map,
                        const CellRect& view, int width, int height) {
  const PooledCells cells = scene.pyramid.reduced(view, height, width);
  Raster raster = color_cells(cells, range, map);
  if (scene.highlight) color_highlighted(cells, *scene.highlight, raster);
  if (any_special(cells)) mark_special(cells, map, raster);
  QImage image(width, height, QImage::Format_ARGB32);
  for (int y = 0; y < height; ++y)
    std::memcpy(image.scanLine(y), raster.pixels.data() + static_cast<std::size_t>(y) * width,
                static_cast<std::size_t>(width) * sizeof(Argb));
  return {image, cells.pooled};
}

}  // namespace sinkscope
