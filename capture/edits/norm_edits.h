// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "capture/model/norm.h"
#include "core/what_if/edit.h"

namespace sinkscope {

// What a norm is replaced by, at one place. Tensors are float32 on the run's device.
struct NormReplacement {
  NormReplace::With with = NormReplace::With::rmsnorm;
  bool doubles_gate = true;       // 2σ (identity start) instead of the paper's σ
  at::Tensor gate_down, gate_up;  // [r, D], [D, r] or [1, r]; undefined: W_up = 0
  at::Tensor pre_gain;            // [D]; undefined = 1
  at::Tensor own_pre_gain;        // [D] that x holds already and that goes; undefined = none
  double dyt_alpha = 0;           // fitted
};

// x [1, T, D] -> the replacement's output, in x's type. What is not replaced stays as the norm has
// it: its kind and bias under a gate, bias under DyT, kind, bias and gate under a pre-gain.
NormOutput replaced_norm(const NormReplacement& by, const at::Tensor& x, const Norm& own);

// The α that makes γ ⊙ tanh(αx) nearest in least squares to the norm's own output γ ⊙ x / rms(x),
// of a LayerNorm γ ⊙ (x − μ) / σ, over these inputs: golden section on ln α over at most 64 of
// their rows, evenly spaced, then Newton's steps over all of them.
double fit_dyt_alpha(const std::vector<at::Tensor>& inputs, const Norm& norm);

// Rows of x [1, T, D] that are edited: mask [T] bool; dims [n] long.
struct ProbeTarget {
  at::Tensor mask, dims;
};

// What the norm sees: mean, zero and remove_const, clamp. `mean` [n] is E x_d (mode mean).
at::Tensor probed_input(const NormProbe& probe, const ProbeTarget& at_, const at::Tensor& x,
                        const at::Tensor& mean);
// What becomes of its output y = norm(probed x): direct, denominator (which needs the true x),
// direct_const, remove_const. `mean` [n] is E y_d.
at::Tensor probed_output(const NormProbe& probe, const ProbeTarget& at_, const at::Tensor& x,
                         const at::Tensor& y, double eps, const at::Tensor& mean);

}  // namespace sinkscope
