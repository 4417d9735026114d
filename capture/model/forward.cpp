// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/model/forward.h"

#include <ATen/Parallel.h>

#include <optional>

#include "capture/model/linear.h"
#include "capture/model/row_math.h"

namespace sinkscope {
namespace {

// Whether the kernels over float rows take it: on the CPU, in float32, rows whole.
bool is_plain(const at::Tensor& x) {
  return x.is_cpu() && x.scalar_type() == at::kFloat && x.stride(-1) == 1;
}

// One position at a time; the heads of a position lie anywhere in a wider matrix.
at::Tensor rotate_on_cpu(const at::Tensor& x, const RotaryTable& rotary) {
  const std::int64_t T = x.size(1), n = rotary.cos.size(-1);
  at::Tensor y = at::empty(x.sizes(), x.options());
  const float *from = x.const_data_ptr<float>(), *cos = rotary.cos.const_data_ptr<float>(),
              *sin = rotary.sin.const_data_ptr<float>();
  float* to = y.data_ptr<float>();
  at::parallel_for(0, T, 64, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t)
      rotate_heads(from + t * x.stride(1), x.stride(2), static_cast<int>(x.size(2)),
                   static_cast<int>(x.size(3)), cos + t * n, sin + t * n, static_cast<int>(n),
                   to + t * y.stride(1), y.stride(2));
  });
  return y;
}

// Rotate-half over the n leading dims: (a, b) = (x_i, x_{i + n/2}) -> (a c − b s, b c + a s).
at::Tensor rotate(const at::Tensor& x, const RotaryTable& rotary) {  // x [B, T, heads, d]
  const std::int64_t n = rotary.cos.size(-1), half = n / 2;
  if (n == 0) return x;
  if (is_plain(x) && x.size(0) == 1) return rotate_on_cpu(x, rotary);
  const at::Tensor a = x.narrow(-1, 0, half), b = x.narrow(-1, half, half);
  const at::Tensor turned = (x.narrow(-1, 0, n) * rotary.cos)
                                .addcmul_(at::cat({b, a}, -1), rotary.sin)
                                .to(x.scalar_type());
  const std::int64_t rest = x.size(-1) - n;
  return rest > 0 ? at::cat({turned, x.narrow(-1, n, rest)}, -1) : turned;
}

// Rows of the last dimension, all the same distance apart, or undefined.
std::optional<std::int64_t> row_stride(const at::Tensor& x) {
  if (!is_plain(x) || x.dim() < 2) return std::nullopt;
  for (std::int64_t i = x.dim() - 2; i > 0; --i)
    if (x.size(i - 1) > 1 && x.stride(i - 1) != x.stride(i) * x.size(i)) return std::nullopt;
  return x.stride(-2);
}

at::Tensor rms_norm_on_cpu(const at::Tensor& x, std::int64_t stride, const at::Tensor& gain,
                           double eps) {
  at::Tensor y = at::empty(x.sizes(), x.options());
  const std::int64_t width = x.size(-1), n_rows = width > 0 ? x.numel() / width : 0;
  const float *from = x.const_data_ptr<float>(), *w = gain.const_data_ptr<float>();
  float* to = y.data_ptr<float>();
  at::parallel_for(0, n_rows, 32, [&](std::int64_t begin, std::int64_t end) {
    rms_norm_rows(from + begin * stride, stride, end - begin, static_cast<int>(width), w, eps,
                  to + begin * width, width);
  });
  return y;
}

at::Tensor heads_of(const at::Tensor& qkv, std::int64_t first, std::int64_t heads,
                    std::int64_t d) {  // [B, T, width] -> [B, T, heads, d]
  return qkv.narrow(-1, first * d, heads * d).unflatten(-1, {heads, d});
}

}  // namespace

RotaryTable rotary_table(const RopeFrequencies& frequencies, int seq_len, at::Device device) {
  const auto half = static_cast<std::int64_t>(frequencies.inverse.size());
  const at::Tensor inverse = at::tensor(frequencies.inverse, at::kFloat);
  const at::Tensor positions = at::arange(seq_len, at::kFloat);
  const at::Tensor angles = at::outer(positions, inverse).view({seq_len, 1, half});
  const at::Tensor cos = angles.cos() * frequencies.attention_scaling,
                   sin = angles.sin() * frequencies.attention_scaling;
  return {at::cat({cos, cos}, -1).to(device), at::cat({-sin, sin}, -1).to(device)};
}

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& gain, double eps) {
  if (const auto stride = row_stride(x)) return rms_norm_on_cpu(x, *stride, gain, eps);
  const at::Tensor h = x.to(at::kFloat);
  const auto width = static_cast<double>(h.size(-1));
  const at::Tensor scale = h.norm(2, -1, /*keepdim=*/true).square_().div_(width).add_(eps).rsqrt_();
  return h.mul(scale).mul_(gain).to(x.scalar_type());
}

at::Tensor silu_times(const at::Tensor& gate, const at::Tensor& up) {
  const auto gate_stride = row_stride(gate), up_stride = row_stride(up);
  if (!gate_stride || !up_stride) return at::silu(gate).mul_(up);
  at::Tensor y = at::empty(gate.sizes(), gate.options());
  const std::int64_t width = gate.size(-1);
  const float *g = gate.const_data_ptr<float>(), *u = up.const_data_ptr<float>();
  float* to = y.data_ptr<float>();
  at::parallel_for(0, width > 0 ? gate.numel() / width : 0, 16,
                   [&](std::int64_t begin, std::int64_t end) {
                     for (std::int64_t r = begin; r < end; ++r)
                       silu_times(g + r * *gate_stride, u + r * *up_stride, width, to + r * width);
                   });
  return y;
}

at::Tensor Interventions::on_norm(Role /*role*/, int /*layer*/, const at::Tensor& x,
                                  const at::Tensor& gain, double eps) {
  return rms_norm(x, gain, eps);
}

at::Tensor Interventions::on_gate(int /*layer*/, const at::Tensor& gate, const at::Tensor& up) {
  return silu_times(gate, up);
}

at::Tensor norm_input(const at::Tensor& x, const at::Tensor& pre_gain) {
  return pre_gain.defined() ? (x * pre_gain).to(x.scalar_type()) : x;
}

at::Tensor residual_state(const BlockPass& pass, Site site, const at::Tensor& x) {
  const at::Tensor state = pass.edits.on_residual(site, pass.layer, x);
  pass.listener.on_tap(site, pass.layer, state);
  return state;
}

at::Tensor attention_half(const BlockPass& pass, const at::Tensor& x) {
  const auto& [spec, w, layer, rotary, listener, edits] = pass;
  const int H = spec.n_heads, G = spec.n_kv_heads, d = spec.head_dim;
  const at::Tensor seen = norm_input(x, w.ln1_pre);
  if (w.ln1_pre.defined()) listener.on_norm_input(Role::ln1, layer, seen);
  const at::Tensor n1 = edits.on_norm(Role::ln1, layer, seen, w.ln1, spec.norm_eps);
  listener.on_tap(Site::ln1_out, layer, n1);

  const at::Tensor qkv = linear_layer(n1, w.qkv, w.qkv_bias);
  at::Tensor q = heads_of(qkv, 0, H, d), k = heads_of(qkv, H, G, d);
  const at::Tensor v = heads_of(qkv, H + G, G, d);
  if (w.q_norm.defined()) {
    q = rms_norm(q, w.q_norm, spec.norm_eps);
    k = rms_norm(k, w.k_norm, spec.norm_eps);
    listener.on_tap(Site::q_norm, layer, q);
    listener.on_tap(Site::k_norm, layer, k);
  }
  listener.on_tap(Site::q, layer, q);
  listener.on_tap(Site::k, layer, k);
  listener.on_tap(Site::v, layer, v);
  q = rotate(q, rotary);
  k = rotate(k, rotary);
  listener.on_tap(Site::rot_q, layer, q);
  listener.on_tap(Site::rot_k, layer, k);

  const AttentionCall call{q[0],
                           k[0],
                           v[0],
                           spec.attention_scale,
                           spec.window[static_cast<std::size_t>(layer)],
                           edits.on_attention(layer)};
  at::Tensor z = listener.on_attention(layer, call);
  if (!z.defined()) return {};
  z = edits.on_z(layer, z.to(x.scalar_type()).unsqueeze(0), n1);
  listener.on_tap(Site::z, layer, z);
  const at::Tensor attn_out = linear_layer(z.flatten(2), w.o, w.o_bias);
  listener.on_tap(Site::attn_out, layer, attn_out);
  return x + attn_out;
}

at::Tensor mlp_half(const BlockPass& pass, const at::Tensor& mid) {
  const auto& [spec, w, layer, rotary, listener, edits] = pass;
  const at::Tensor seen = norm_input(mid, w.ln2_pre);
  if (w.ln2_pre.defined()) listener.on_norm_input(Role::ln2, layer, seen);
  const at::Tensor n2 = edits.on_norm(Role::ln2, layer, seen, w.ln2, spec.norm_eps);
  listener.on_tap(Site::ln2_out, layer, n2);
  const at::Tensor gate_up = linear_layer(n2, w.gate_up, w.gate_up_bias);
  const at::Tensor gate = gate_up.narrow(-1, 0, spec.d_mlp);
  const at::Tensor up = gate_up.narrow(-1, spec.d_mlp, spec.d_mlp);
  listener.on_tap(Site::mlp_pre, layer, gate);
  listener.on_tap(Site::mlp_pre_linear, layer, up);
  const at::Tensor hidden = edits.on_gate(layer, gate, up);
  listener.on_tap(Site::mlp_post, layer, hidden);
  const at::Tensor mlp_out = linear_layer(hidden, w.down, w.down_bias);
  listener.on_tap(Site::mlp_out, layer, mlp_out);
  return mid + mlp_out;
}

}  // namespace sinkscope
