// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/model/blocks.h"
#include "capture/model/linear.h"
#include "capture/model/short_convolution.h"

namespace sinkscope {
namespace {

// Each head's length cut to `limit`: x · min(1, limit / (‖x‖ + 1e-6)); 0 = no limit.
at::Tensor limited(const at::Tensor& x, double limit) {
  if (limit <= 0) return x;
  const at::Tensor h = x.to(at::kFloat);
  const at::Tensor length = h.norm(2, -1, /*keepdim=*/true) + 1e-6;
  return (h * (limit / length).clamp_max(1)).to(x.scalar_type());
}

// 1 + g·ln(max(1, (t+1)/floor)) for each token, [1, T, 1, 1].
at::Tensor growth_of(const RelativeSpec& relative, const at::Tensor& like) {
  const at::Tensor t =
      at::arange(1, like.size(1) + 1, like.options().dtype(at::kFloat)).view({1, -1, 1, 1});
  return (t / relative.growth_floor).clamp_min_(1).log_().mul_(relative.growth).add_(1);
}

// Keys or values of an input n [1, T, D], through their convolution: [1, T, G, d].
at::Tensor convolved(const at::Tensor& n, const at::Tensor& product, const at::Tensor& conv,
                     const at::Tensor& taps, std::int64_t heads, std::int64_t d) {
  const at::Tensor all = linear_layer(n, product, {});
  const at::Tensor u = all.narrow(-1, 0, heads * d);
  if (!taps.defined()) return residual_convolution(u, conv).unflatten(-1, {heads, d});
  return dynamic_convolution(u, taps, heads_of(all, heads * d, heads, taps.size(0)))
      .unflatten(-1, {heads, d});
}

// The normed input of keys or values; without a norm of their own that of the queries.
at::Tensor own_input(const BlockPass& pass, const Norm& norm, Role role, Site site, int input,
                     const at::Tensor& n1, const at::Tensor& seen) {
  if (!norm.exists()) return n1;
  const at::Tensor y = pass.edits.on_norm(role, pass.layer, input_of(seen, input), norm).y;
  pass.listener.on_tap(site, pass.layer, y);
  return y;
}

}  // namespace

at::Tensor relative_attention(const BlockPass& pass, const at::Tensor& n1, const at::Tensor& seen) {
  const auto& [spec, weights, layer, rotary, listener, edits, state] = pass;
  const RelativeWeights& w = weights.relative;
  const RelativeSpec& relative = spec.relative;
  const std::int64_t H = spec.n_heads, G = spec.kv_heads(layer), d = spec.head_dim_of(layer),
                     d_v = spec.d_value_of(layer), gate = H * spec.gate_dim_of(layer);
  const at::Tensor n_k = own_input(pass, w.k_norm, Role::ln1_k, Site::ln1_k_out, 1, n1, seen);
  const at::Tensor n_v = own_input(pass, w.v_norm, Role::ln1_v, Site::ln1_v_out, 2, n1, seen);
  const at::Tensor all = linear_layer(n1, w.query, {});  // q, gate, r, sink logits

  at::Tensor q = limited(heads_of(all, 0, H, d) * w.q_scale, relative.qk_limit);
  at::Tensor r =
      limited(heads_of(all, H * d + gate, H, relative.dim) * w.r_scale, relative.r_limit);
  const at::Tensor k = limited(convolved(n_k, w.key, w.k_conv, w.k_taps, G, d), relative.qk_limit);
  at::Tensor v = convolved(n_v, w.value, w.v_conv, w.v_taps, G, d_v);
  if (spec.value_norm) {
    v = unit_rms(v, spec.norm_eps);
    listener.on_tap(Site::v_norm, layer, v);
  }
  listener.on_tap(Site::q, layer, q);
  listener.on_tap(Site::k, layer, k);
  listener.on_tap(Site::v, layer, v);
  if (relative.growth != 0 && spec.window[static_cast<std::size_t>(layer)] == 0) {
    const at::Tensor growth = growth_of(relative, n1);
    q = q * growth;
    r = r * growth;
  }
  AttentionParts parts;
  parts.r = r[0].to(at::kFloat);
  parts.profiles = w.profiles;
  if (spec.sink_projection)
    parts.sink = all.narrow(-1, H * d + gate + H * relative.dim, H)[0].to(at::kFloat).t();
  const at::Tensor z = attend(pass, n1, q.to(n1.scalar_type()), k, v, parts);
  if (!z.defined()) return {};
  return attention_output(pass, z, gate > 0 ? all.narrow(-1, H * d, gate) : at::Tensor());
}

}  // namespace sinkscope
