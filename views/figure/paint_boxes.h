// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "views/figure/figure_layout.h"
#include "views/figure/ink.h"

namespace sinkscope {

// White boxes with text on the plot. Lines that are wider than the plot become smaller, then break;
// a box beside a cell evades those that were there before.
void paint_boxes(const FigurePanel& panel, const QRectF& plot, const Ink& ink);

}  // namespace sinkscope
