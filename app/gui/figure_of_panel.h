// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/gui/session.h"
#include "core/draw/value_range.h"
#include "core/figure/figure_request.h"

namespace sinkscope {

// What is open, as a command would name it: "RUN.h5", "RUN.h5::run1", a model's path.
std::vector<std::string> figure_inputs(const Session& session);

// The figure that shows what a panel shows: the same run, layer, head, view and range. nullopt for
// a panel without a kind of figure, or without data.
std::optional<FigureRequest> figure_of_panel(const std::string& panel_id, const Session& session,
                                             const std::optional<RangeRequest>& range);

}  // namespace sinkscope
