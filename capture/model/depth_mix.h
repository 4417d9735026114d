// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "capture/model/forward.h"

// Attention over depth in blocks (Attention Residuals, arXiv 2603.15031, as Inkling 2 has it). The
// stream is the sum of what the halves put out since the block began; it restarts at every
// depth_block-th layer. A half reads no stream but a mix of the closed sums and of the running one.
namespace sinkscope {

// Over states x_0 … x_{S−1} [1, T, D] and queries q [Q, D]:
//   u_j = x_j / rms(x_j) (epsilon 1e-6, no gain);  w = softmax_j(q · u_j / √D);  Σ_j w_j u_j
struct DepthMix {
  at::Tensor weights;  // [1, T, Q, S] float32
  at::Tensor mixed;    // [Q, T, D] in the states' type
};
DepthMix mix_states(const at::Tensor& queries, const std::vector<at::Tensor>& states);

struct DepthSites {
  Site weights, mixed;
};
inline constexpr DepthSites kFinalDepthSites{Site::depth_final_weights, Site::depth_final_mixed};

// The mix over the closed sums and, last, the stream, tapped.
at::Tensor depth_mixture(const at::Tensor& queries, const at::Tensor& stream,
                         const LaneState& state, TapListener& listener, DepthSites sites,
                         int layer);

// half_input() of a model with attention over depth. The first half of all reads the embedding.
at::Tensor depth_input(const BlockPass& pass, Role half, const at::Tensor& stream);

// Closes the sum: the stream as it entered the block joins the states, and `out` is the new stream.
at::Tensor restarted(const BlockPass& pass, const at::Tensor& stream, const at::Tensor& out);

}  // namespace sinkscope
