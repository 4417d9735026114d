// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/ATen.h>

namespace sinkscope {

// x Wᵀ + b over the last dimension: x […, in], w [out, in], b [out] or undefined.
// In float32 on the CPU this is oneDNN's product where LibTorch carries it (a tenth faster than
// at::linear's BLAS on the shapes of a block), at::linear elsewhere.
at::Tensor linear_layer(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b = {});

}  // namespace sinkscope
