// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QColor>

#include "views/figure/figure_layout.h"
#include "views/figure/ink.h"

namespace sinkscope {

// Okabe and Ito's colors without black and yellow, told apart by color-blind readers; they repeat.
// kReferenceColor is gray.
QColor series_color(int index);

void paint_series(const FigurePanel& panel, const PanelPlace& place, const Ink& ink);
void paint_legend(const FigurePanel& panel, const PanelPlace& place, const Ink& ink);

}  // namespace sinkscope
