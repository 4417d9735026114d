// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

#include "core/figure/make_figure.h"
#include "core/snapshot/norms_snapshot.h"

namespace sinkscope {

// The norms that act on the residual stream in several layers. Throws Error{not_found} without any.
NormsSnapshot norms_for(const FigureRequest& request, const FigureInput& input);

// Layers down, dimensions to the right; starred dimensions as ticks, extreme gains in boxes.
FigurePanel norm_panel(const std::string& title, const NormStrip& strip);

}  // namespace sinkscope
