// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <vector>

#include "capture/model_comparison.h"

namespace sinkscope {

// ModelComparison::compare_models, within inference mode and with the threads already set.
std::optional<std::vector<RunDivergence>> compare_models(const ModelFiles& a, const ModelFiles& b,
                                                         const EvaluateRequest& request,
                                                         JobContext job);

}  // namespace sinkscope
