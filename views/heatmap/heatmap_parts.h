// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QPen>
#include <vector>

#include "core/draw/colormap.h"
#include "core/draw/value_range.h"

class QCPAbstractItem;
class QCPAxisRect;
class QCPItemRect;
class QCPItemStraightLine;

namespace sinkscope {

// What a Heatmap holds of its plot.
struct HeatmapParts {
  ValueRange range;
  Colormap map = colormap("viridis");
  QCPAxisRect* rect = nullptr;
  QCPItemStraightLine *row_line = nullptr, *col_line = nullptr;  // the crosshair
  QCPItemRect* selected = nullptr;
  std::vector<QCPAbstractItem*> notes;              // value boxes and their leaders
  std::vector<QCPAbstractItem*> pins;               // circles on the cursor's layer
  double row_label_width = 0, col_label_width = 0;  // of the widest label, pixels
  // Beside the map: what its own labels need, and what the owner asks for at least.
  double needed_left = 0, needed_right = 0, least_left = 0, least_right = 0;
};

}  // namespace sinkscope
