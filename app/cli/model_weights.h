// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

#include "core/capture_layout.h"
#include "core/rescale/report.h"

namespace sinkscope {

// The weights of a capture's model, read a few rows at a time. Throws Error{invalid_argument} when
// the model is another one than the capture was made of, and what open_model throws.
WeightRows model_weights(const std::string& model, const ModelFacts& recorded);

}  // namespace sinkscope
