// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/gui/session.h"
#include "core/draw/pyramid.h"
#include "core/draw/value_range.h"
#include "core/figure/figure_request.h"

namespace sinkscope {

// What is open, as a command would name it: "RUN.h5", "RUN.h5::run1", a model's path.
std::vector<std::string> figure_inputs(const Session& session);

// The models that are open, each with the file that it was opened by.
ModelArchs figure_models(const Session& session);

// How a panel shows it: its range, and the part of its map that is zoomed to.
struct PanelView {
  std::optional<RangeRequest> range = {};
  bool range_each = false;  // of a comparison: every side its own
  std::optional<CellRect> zoom = {};
};

// The figure that shows what a panel shows: the same run, layer, head, view, range and part of the
// map. nullopt for a panel without a kind of figure, or without data.
std::optional<FigureRequest> figure_of_panel(const std::string& panel_id, const Session& session,
                                             const PanelView& view);

}  // namespace sinkscope
