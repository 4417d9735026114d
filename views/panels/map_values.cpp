// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/panels/map_values.h"

#include <algorithm>
#include <cmath>

#include "core/number_text.h"
#include "core/snapshot/run_facts.h"
#include "views/theme.h"

namespace sinkscope {

namespace {

QString name_of(const HeatmapAxis& axis, int place) {
  // A table is for machines: the number of a position or dimension, not the token's text.
  HeatmapAxis numbers = {{}, {}, axis.indices, {}};
  return QString::fromStdString(cell_name(numbers, place));
}

}  // namespace

QString values_table(const Grid& grid, const HeatmapAxis& rows, const HeatmapAxis& cols,
                     const CellRect& view, const QString& corner) {
  const int top = std::max(0, static_cast<int>(std::floor(view.top)));
  const int left = std::max(0, static_cast<int>(std::floor(view.left)));
  const int bottom = std::min(grid.rows(), static_cast<int>(std::ceil(view.bottom)));
  const int right = std::min(grid.cols(), static_cast<int>(std::ceil(view.right)));
  QString text = corner;
  for (int c = left; c < right; ++c) text += QLatin1Char('\t') + name_of(cols, c);
  text += QLatin1Char('\n');
  for (int r = top; r < bottom; ++r) {
    text += name_of(rows, r);
    for (int c = left; c < right; ++c) {
      text += QLatin1Char('\t');
      if (grid.exists(r, c)) text += QString::fromStdString(csv_number(grid.at(r, c)));
    }
    text += QLatin1Char('\n');
  }
  return text;
}

std::vector<std::string> bare_tokens(const std::vector<std::string>& labels) {
  std::vector<std::string> bare;
  for (const std::string& label : labels) bare.push_back(bare_token(label));
  const bool has_text =
      std::any_of(bare.begin(), bare.end(), [](const auto& b) { return !b.empty(); });
  return has_text ? bare : std::vector<std::string>();
}

QString counts_text(std::span<const Grid> grids, const ValueRange& range) {
  return QString::fromStdString(summary_text(summarize(grids, range)));
}

QString diverging_colormap(const QPalette& palette) {
  return theme_of(palette) == Theme::dark ? QStringLiteral("blue-orange-dark")
                                          : QStringLiteral("blue-orange");
}

}  // namespace sinkscope
