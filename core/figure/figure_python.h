// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

#include "core/figure/figure_request.h"

namespace sinkscope {

// A Python script (h5py, numpy, matplotlib) that reads the same arrays as the request and plots
// them: a start for a figure of one's own. A preset gives the script of its attention or residual
// map. Where a model is drawn, the script says to record a capture first: h5py reads no weights.
std::string figure_python(const FigureRequest& request);

}  // namespace sinkscope
