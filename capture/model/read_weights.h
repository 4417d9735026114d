// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

#include "capture/checkpoint/model_files.h"
#include "capture/model/norm.h"

namespace sinkscope {

// Rows [begin, end) of a role as a tensor of the given type on the device.
at::Tensor read_matrix(const ModelFiles& model, Role role, int layer, std::int64_t begin,
                       std::int64_t end, at::Device device, at::ScalarType dtype);

// A norm with its bias and gate; one that does not exist() when the role is not filled.
Norm read_norm(const ModelFiles& model, Role role, int layer, at::Device device);

}  // namespace sinkscope
