// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "core/draw/colormap.h"
#include "core/draw/grid.h"
#include "core/draw/value_range.h"

namespace sinkscope {

// A figure as a value: everything that is drawn and nothing about how. The window's preview, the
// exported file and the CSV are three readings of the same Figure.

struct FigureTick {
  double at = 0;     // in the axis' own coordinate
  std::string text;  // UTF-8
  bool starred = false;
  bool operator==(const FigureTick&) const = default;
};

// `low` is the left or the bottom end. A map's cell i covers i−½ … i+½, so that its rows run from
// −½ at the top (`high`) to n−½ at the bottom (`low`).
struct FigureAxis {
  std::string label;
  double low = 0, high = 1;
  bool is_log = false;             // both ends > 0
  bool is_sideways = false;        // x only: tick labels read upward
  std::vector<FigureTick> ticks;   // candidates; the painter leaves out what would overlap
  std::vector<std::string> names;  // of the positions 0, 1, … (CSV); empty = their numbers
};

struct FigureMap {
  Grid grid;       // [rows, columns]
  int colors = 0;  // which of Figure::colors
  // Gains: cells that share a dot of the page show the one farthest from 1 by ratio; other maps
  // are pooled (largest |x|) only where a picture has fewer pixels than cells.
  bool is_about_one = false;
  bool nan_is_paper = false;  // NaN is a gap between cells, not a value
};

// Points in the coordinates of the panel's axes. NaN in y interrupts a line.
struct FigureSeries {
  enum class Style { line, dashed, dots, bars };
  std::string name;  // in the legend; "" = not there
  Style style = Style::line;
  int color = 0;  // index into kSeriesColors; kReferenceColor = gray
  std::vector<double> x, y;
};
inline constexpr int kReferenceColor = -1;

// Text on white inside the plot.
struct FigureBox {
  enum class Place { top_right, bottom_right, top_left, bottom_left, beside_point };
  Place place = Place::top_right;
  double x = 0, y = 0;  // beside_point: the cell it speaks of
  std::vector<std::string> lines;
};

struct FigurePanel {
  std::string title;
  FigureAxis x, y;
  double height_ratio = 1;      // plot height / plot width
  std::vector<FigureMap> maps;  // none or one
  std::vector<FigureSeries> series;
  std::vector<FigureBox> boxes;
  bool has_color_bar = false;  // right of the plot
};

// A color range and its bar; panels that share a range share one of these.
struct FigureColors {
  std::string label;
  ValueRange range;
  Colormap map;
  RangeSummary summary;    // of the panels that share it
  std::string above_text;  // over the bar, in the color of cells above the range: "> 100"
};

struct FigureNote {
  std::string text;
  bool is_warning = false;  // in red: what must not be overlooked
};

struct Figure {
  std::string title;
  std::string panel_labels;  // "a": a, b, c …; "A"; "" = none
  int n_columns = 1;         // panels fill rows first
  std::vector<FigurePanel> panels;
  std::vector<FigureColors> colors;
  std::vector<FigureNote> notes;  // below everything: the convention behind each number
  double width_mm = 85;
  double font_pt = 7;
};

// One table: panel,series,x,y,value. Of a map the series is "map", x and y are the names of column
// and row; of a series y is empty and value is the point's height.
std::string figure_csv(const Figure& figure);

}  // namespace sinkscope
