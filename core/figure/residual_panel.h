// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

#include "core/figure/figure.h"
#include "core/snapshot/residual_snapshot.h"

namespace sinkscope {

// Tokens down, dimensions to the right with their original indices.
FigurePanel residual_panel(const std::string& title, const ResidualSnapshot& snapshot);

// "Max activation 22,552.0" and "First 1‰ ratio 94.1 ‰".
FigureBox residual_box(const ResidualSnapshot& snapshot);
// What the two numbers are, in words.
std::string residual_box_note(const ResidualSnapshot& snapshot);

}  // namespace sinkscope
