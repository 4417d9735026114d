// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/figure/figure_layout.h"
#include "views/figure/ink.h"

namespace sinkscope {

// The cells of a map over its whole plot: one image pixel a cell, never interpolated, on white.
// +inf and −inf carry a small triangle and NaN a cross where cells are large enough to see it.
void paint_map(const FigureMap& map, const FigureColors& colors, const QRectF& plot,
               const Ink& ink);

// Whether several cells share a pixel (0 pixels a point: a vector format), which a reader must be
// told.
bool is_pooled(const FigureMap& map, const QRectF& plot, double pixels_per_point);

// The bar at place.bar with its ticks, label, and the colors of cells outside the range.
void paint_color_bar(const FigureColors& colors, const PanelPlace& place, const Ink& ink);

}  // namespace sinkscope
