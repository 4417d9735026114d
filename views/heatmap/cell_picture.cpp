// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/heatmap/cell_picture.h"

#include <algorithm>
#include <cstring>

#include "core/draw/raster.h"

namespace sinkscope {

namespace {

constexpr int kHatch = 6, kDots = 5, kDot = 2;  // pixels

Argb darker(Argb color) {
  Argb result = 0xFF;
  for (int shift = 16; shift >= 0; shift -= 8)
    result = result << 8 | ((color >> shift & 0xFF) * 5 / 8);
  return result;
}

Argb contrasting(Argb color) { return ok_lab(color).l > 0.6 ? 0xFF000000U : 0xFFFFFFFFU; }

// Hatches NaN and dots infinities; a pattern is part of the pixel and not of the cell, so that it
// is seen at every zoom.
void mark_special(const PixelRow& row, const Colormap& map, Argb* out) {
  const int y = row.row;
  for (int x = 0; x < row.cols; ++x) {
    const CellKind kind = row.kinds[x];
    if (kind == CellKind::finite || kind == CellKind::masked) continue;
    const bool dot = x % kDots < kDot && y % kDots < kDot;
    if (kind == CellKind::nan && (x + y) % kHatch < 2) out[x] = darker(map.nan);
    if (kind == CellKind::plus_inf && dot) out[x] = contrasting(map.plus_inf);
    if (kind == CellKind::minus_inf && dot) out[x] = contrasting(map.minus_inf);
  }
}

void color_highlighted(const PixelRow& row, const Highlight& highlight, Argb* out) {
  for (int x = 0; x < row.cols; ++x)
    if (row.kinds[x] == CellKind::finite && row.values[x] > highlight.above)
      out[x] = highlight.color;
}

bool any_special(const PixelRow& row) {
  return std::any_of(row.kinds, row.kinds + row.cols, [](CellKind kind) {
    return kind != CellKind::finite && kind != CellKind::masked;
  });
}

}  // namespace

QImage paint_cells(const HeatmapScene& scene, const ValueRange& range, const Colormap& map,
                   const CellRect& view, int width, int height) {
  // Every pixel is opaque or nothing, which is the same premultiplied, and drawn faster.
  QImage image(width, height, QImage::Format_ARGB32_Premultiplied);
  if (scene.grid().empty()) image.fill(Qt::transparent);
  const CellPainter painter(range, map);
  // Taken once: from several threads scanLine() would each make the image its own.
  uchar* const bits = image.bits();
  const qsizetype line = image.bytesPerLine();
  scene.pyramid.reduce_bands(view, height, width, [&](const PixelRow& row) {
    auto* out = reinterpret_cast<Argb*>(bits + row.row * line);
    const bool special = any_special(row);
    if (row.repeats && !special) {
      std::memcpy(out, bits + (row.row - 1) * line, static_cast<std::size_t>(width) * 4);
      return;
    }
    painter.paint(row, out);
    if (scene.highlight) color_highlighted(row, *scene.highlight, out);
    if (special) mark_special(row, map, out);
  });
  return image;
}

}  // namespace sinkscope
