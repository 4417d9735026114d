// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/model/depth_mix.h"

#include <cmath>

namespace sinkscope {

DepthMix mix_states(const at::Tensor& queries, const std::vector<at::Tensor>& states) {
  constexpr double kEps = 1e-6;
  const double scale = 1 / std::sqrt(static_cast<double>(queries.size(1)));
  std::vector<at::Tensor> shrink, logits;  // 1 / rms [T, 1], [T, Q]
  for (const at::Tensor& state : states) {
    const at::Tensor x = state[0].to(at::kFloat);
    shrink.push_back((x.square().mean(-1, /*keepdim=*/true) + kEps).rsqrt());
    logits.push_back(x.matmul(queries.t()) * shrink.back() * scale);
  }
  const at::Tensor weights = at::stack(logits, -1).softmax(-1);  // [T, Q, S]
  at::Tensor mixed =
      at::zeros({queries.size(0), states[0].size(1), states[0].size(2)}, weights.options());
  for (std::size_t j = 0; j < states.size(); ++j) {
    const at::Tensor x = states[j][0].to(at::kFloat);
    const at::Tensor share = weights.select(-1, static_cast<std::int64_t>(j)) * shrink[j];
    mixed.addcmul_(x.unsqueeze(0), share.t().unsqueeze(-1));
  }
  return {weights.unsqueeze(0), mixed.to(states[0].scalar_type())};
}

at::Tensor depth_mixture(const at::Tensor& queries, const at::Tensor& stream,
                         const LaneState& state, TapListener& listener, DepthSites sites,
                         int layer) {
  std::vector<at::Tensor> states = state.block_states;
  states.push_back(stream);
  const DepthMix mix = mix_states(queries, states);
  listener.on_tap(sites.weights, layer, mix.weights);
  listener.on_tap(sites.mixed, layer, mix.mixed.transpose(0, 1).unsqueeze(0));
  return mix.mixed;
}

at::Tensor depth_input(const BlockPass& pass, Role half, const at::Tensor& stream) {
  const bool is_first = half == Role::ln1;
  const at::Tensor& queries = is_first ? pass.w.depth_attn_query : pass.w.depth_mlp_query;
  if (!queries.defined()) return stream;
  const DepthSites sites = is_first ? DepthSites{Site::depth_attn_weights, Site::depth_attn_mixed}
                                    : DepthSites{Site::depth_mlp_weights, Site::depth_mlp_mixed};
  return depth_mixture(queries, stream, pass.state, pass.listener, sites, pass.layer);
}

at::Tensor restarted(const BlockPass& pass, const at::Tensor& stream, const at::Tensor& out) {
  pass.state.block_states.push_back(stream);
  return out;
}

}  // namespace sinkscope
