// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QPointF>
#include <QRectF>
#include <QSizeF>
#include <QString>
#include <vector>

#include "core/figure/figure.h"

namespace sinkscope {

// Where everything of a figure goes, in points from the top left corner of the page.

struct PanelPlace {
  QRectF plot;
  QRectF bar;                         // the color bar; null = none
  std::vector<FigureTick> bar_ticks;  // at 0 … 1
  std::vector<QString> title_lines;
  QPointF title;                         // baseline of the first line
  std::vector<std::vector<int>> legend;  // rows of indices into series
  double legend_top = 0;
  std::vector<FigureTick> x_ticks, y_ticks;  // those that have room
  double x_label_top = 0;                    // below the tick labels
  double y_label_left = 0;                   // left of the tick labels
};

struct FigureLayout {
  QSizeF size;  // whole points
  std::vector<QString> title_lines;
  std::vector<PanelPlace> panels;
  struct NoteLine {
    QString text;
    bool is_warning = false;
  };
  std::vector<NoteLine> note_lines;
  double notes_top = 0;
};

// Needs a QGuiApplication. Throws Error{invalid_argument} when the panels have no room at this
// width.
FigureLayout lay_out(const Figure& figure);

// Where a coordinate of the axis lies between `from` (low) and `to` (high).
double place_on(const FigureAxis& axis, double at, double from, double to);

// Of ticks with centers and lengths along an axis those that do not overlap: starred ones first,
// of the others every k-th with the smallest k that fits. In the order given.
std::vector<int> ticks_that_fit(const std::vector<double>& centers,
                                const std::vector<double>& lengths,
                                const std::vector<bool>& starred, double gap);

inline constexpr double kMargin = 3, kTickLength = 2.5, kBarWidth = 7, kBarGap = 5;
inline constexpr double kLegendMark = 16, kLegendGap = 8;

}  // namespace sinkscope
