// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>

#include "capture/engine.h"

namespace sinkscope {

// Engine::evaluate, within inference mode and with the threads already set.
std::optional<Evaluation> evaluate_what_ifs(const ModelFiles& model, const EvaluateRequest& request,
                                            JobContext job);

}  // namespace sinkscope
