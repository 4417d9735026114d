// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>

#include <cmath>

#include "core/figure/figure.h"
#include "core/number_text.h"

namespace sinkscope {
namespace {

std::string name_of(const FigureAxis& axis, int i) {
  const auto place = static_cast<std::size_t>(i);
  return place < axis.names.size() ? csv_field(axis.names[place]) : std::to_string(i);
}

void add_map(const std::string& panel, const FigurePanel& from, const FigureMap& map,
             std::string& table) {
  const Grid& grid = map.grid;
  for (int row = 0; row < grid.rows(); ++row)
    for (int col = 0; col < grid.cols(); ++col)
      if (grid.exists(row, col) && !(map.nan_is_paper && std::isnan(grid.at(row, col))))
        table += fmt::format("{},map,{},{},{}\n", panel, name_of(from.x, col), name_of(from.y, row),
                             csv_number(grid.at(row, col)));
}

void add_series(const std::string& panel, const FigurePanel& from, const FigureSeries& series,
                std::string& table) {
  for (std::size_t i = 0; i < series.x.size(); ++i) {
    const bool is_named = !from.x.names.empty() && series.x[i] == std::floor(series.x[i]);
    table += fmt::format(
        "{},{},{},,{}\n", panel, csv_field(series.name),
        is_named ? name_of(from.x, static_cast<int>(series.x[i])) : csv_number(series.x[i]),
        csv_number(series.y[i]));
  }
}

}  // namespace

std::string figure_csv(const Figure& figure) {
  std::string table = "panel,series,x,y,value\n";
  for (const FigurePanel& panel : figure.panels) {
    const std::string name = csv_field(panel.title);
    for (const FigureMap& map : panel.maps) add_map(name, panel, map, table);
    for (const FigureSeries& series : panel.series) add_series(name, panel, series, table);
  }
  return table;
}

}  // namespace sinkscope
