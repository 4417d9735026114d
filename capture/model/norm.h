// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/ATen.h>

#include "capture/checkpoint/arch_spec.h"

namespace sinkscope {

// A norm with its weights, float32 on the run's device. Undefined parts are not there.
struct Norm {
  NormKind kind = NormKind::rms;
  double eps = 1e-5;
  at::Tensor gain, bias;          // [D], the gain effective
  at::Tensor gate_down, gate_up;  // [r, D], [D, r]: GatedNorm, y ⊙ σ(up silu(down y))
  bool exists() const { return gain.defined(); }
};

// What a norm puts out: y, and of a GatedNorm the gate σ(…) that y went through already.
struct NormOutput {
  at::Tensor y, gate;
};

// Whether the kernels of row_math.h take it: on the CPU, in float32, rows whole.
bool is_plain(const at::Tensor& x);

// Over the last dimension of x, in float32, back in x's type.
//   rms: w · x / sqrt(mean(x²) + eps)      layer_norm: w · (x − mean) / sqrt(var + eps) + b
NormOutput apply_norm(const Norm& norm, const at::Tensor& x);

// w · x / sqrt(mean(x²) + eps) over the last dimension, in float32, back in x's type.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& gain, double eps);

// x / sqrt(mean(x²) + eps) over the last dimension, in float32, back in x's type.
at::Tensor unit_rms(const at::Tensor& x, double eps);

// silu(gate) · up, out of place.
at::Tensor silu_times(const at::Tensor& gate, const at::Tensor& up);

// act(gate) · up, or act(gate) where up is undefined; out of place.
at::Tensor gated_unit(Activation activation, const at::Tensor& gate, const at::Tensor& up);

at::Tensor activate(Activation activation, const at::Tensor& x);

}  // namespace sinkscope
