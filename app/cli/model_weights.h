// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <string>

#include "capture/checkpoint/model_files.h"
#include "core/capture_layout.h"
#include "core/rescale/report.h"

namespace sinkscope {

// The weights of a capture's model, read a few rows at a time. Throws Error{invalid_argument} when
// the model is another one than the capture was made of, and what open_model throws.
WeightRows model_weights(const std::string& model, const OpenOptions& options,
                         const ModelFacts& recorded);

// Those of an open model, which is taken to be the capture's.
WeightRows model_weights(std::shared_ptr<const ModelFiles> model);

}  // namespace sinkscope
