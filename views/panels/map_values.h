// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QPalette>
#include <QString>
#include <span>
#include <string>
#include <vector>

#include "views/heatmap/heatmap_scene.h"

namespace sinkscope {

// The cells of `view` as a table of tab-separated values with the names of rows and columns; masked
// cells are empty. `corner` names what the rows are.
QString values_table(const Grid& grid, const HeatmapAxis& rows, const HeatmapAxis& cols,
                     const CellRect& view, const QString& corner);

// Axis labels without the marks of leading spaces; empty where the run was given as ids, so that
// the axis shows positions.
std::vector<std::string> bare_tokens(const std::vector<std::string>& labels);

// "17 above · max 25,804.7 · 0 NaN"
QString counts_text(std::span<const Grid> grids, const ValueRange& range);

// The color map for values around a center, on light or dark paper.
QString diverging_colormap(const QPalette& palette);

}  // namespace sinkscope
