// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QImage>

#include "views/heatmap/heatmap_scene.h"

namespace sinkscope {

// The cells of `view` on width × height pixels: masked ones transparent, NaN hatched, infinities in
// the end color with a dotted pattern, highlighted values in their color.
QImage paint_cells(const HeatmapScene& scene, const ValueRange& range, const Colormap& map,
                   const CellRect& view, int width, int height);

}  // namespace sinkscope
