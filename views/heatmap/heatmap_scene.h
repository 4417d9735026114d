// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/draw/colormap.h"
#include "core/draw/pyramid.h"
#include "core/draw/value_range.h"

namespace sinkscope {

// What stands along one side of a map. A cell is named by its label (a token), else by its index
// (an original dimension, a position, a block), else by its place 0, 1, 2 …
struct HeatmapAxis {
  std::string title;
  std::vector<std::string> labels;  // UTF-8, broken sequences allowed; empty = numbers
  std::vector<int> indices;         // empty = 0, 1, 2 …; −1 has no number ("final")
  std::vector<int> starred;         // places whose ticks are drawn first and with a star
};

// A value written beside its cell.
struct CellNote {
  int row = 0, col = 0;
  std::string text;
};

// Cells above a limit get one color of their own (the papers' green).
struct Highlight {
  double above = 0;
  Argb color = 0xFF2E8B57;
};

// Everything a heatmap draws. Immutable once it is handed over; the pyramid is built by the caller,
// off the window's thread when the grid is large.
struct HeatmapScene {
  Pyramid pyramid;
  ValueRange range;
  std::string colormap = "viridis";
  std::string title;
  HeatmapAxis rows, cols;
  std::vector<CellNote> notes;
  std::string
      box;  // lines in a corner of the map: "Max activation 22,552.0\nFirst 1‰ ratio 94.1 ‰"
  std::string counts;  // "17 above · max 25,804.7 · 0 NaN", written under the map
  std::optional<Highlight> highlight;
  bool square_cells = false;

  const Grid& grid() const { return pyramid.grid(); }
};

// "507", "·The", "12": the name of a place on an axis, for read-outs; the label unshortened.
std::string cell_name(const HeatmapAxis& axis, int place);

}  // namespace sinkscope
