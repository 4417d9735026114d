// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/figure/figure.h"
#include "core/figure/figure_request.h"
#include "views/figure/figure_layout.h"

class QPainter;

namespace sinkscope {

struct PaintOptions {
  FigureText text = FigureText::as_text;
  FigureCells cells = FigureCells::as_image;
  // Device pixels a point; 0 = a vector format, whose maps keep every cell. A map with more cells
  // than pixels is pooled (max |x|), so that no single cell disappears.
  double pixels_per_point = 0;
};

// Paints the figure in points from the painter's origin, on white. The painter's device must count
// 72 dots an inch (fonts are set in points); scale the painter for anything finer.
// Throws Error{invalid_argument}: rectangles for a map of 2,500 cells or more.
void paint_figure(const Figure& figure, const FigureLayout& layout, const PaintOptions& options,
                  QPainter& painter);

}  // namespace sinkscope
