// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/ATen.h>

#include <memory>

#include "capture/model/weights.h"

namespace sinkscope {

// Everything of one block but its routed experts, which ExpertSource reads when tokens go to them.
// Throws Error as ModelFiles does, and Error{corrupt} for a route that leads to no expert.
std::shared_ptr<const LayerWeights> read_layer(const ModelFiles& model, int layer,
                                               at::Device device, at::ScalarType dtype);

}  // namespace sinkscope
