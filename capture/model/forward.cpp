// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/model/forward.h"

#include <ATen/Parallel.h>

#include <cmath>
#include <utility>

#include "capture/model/blocks.h"
#include "capture/model/depth_mix.h"
#include "capture/model/linear.h"
#include "capture/model/row_math.h"
#include "capture/model/short_convolution.h"

namespace sinkscope {
namespace {

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

// What the norm in front of a half puts out; the state itself where there is none.
at::Tensor normed(const BlockPass& pass, Role role, const Norm& norm, const at::Tensor& pre_gain,
                  const at::Tensor& x) {
  if (!norm.exists()) return x;
  const bool is_first = role == Role::ln1;
  const at::Tensor seen = norm_input(x, pre_gain);
  if (pre_gain.defined() || pass.spec.depth_block > 0 || pass.spec.has_streams())
    pass.listener.on_norm_input(role, pass.layer, seen);
  const NormOutput out = pass.edits.on_norm(role, pass.layer, seen, norm);
  if (out.gate.defined())
    pass.listener.on_tap(is_first ? Site::ln1_gate : Site::ln2_gate, pass.layer, out.gate);
  pass.listener.on_tap(is_first ? Site::ln1_out : Site::ln2_out, pass.layer, out.y);
  return out.y;
}

// The norm behind a half, of what it reads.
at::Tensor post_normed(const BlockPass& pass, bool is_first, const at::Tensor& x) {
  const Role role = is_first ? Role::ln1_post : Role::ln2_post;
  const Norm& norm = is_first ? pass.w.ln1_post : pass.w.ln2_post;
  pass.listener.on_norm_input(role, pass.layer, x);
  const at::Tensor y = pass.edits.on_norm(role, pass.layer, x, norm).y;
  pass.listener.on_tap(is_first ? Site::ln1_post_out : Site::ln2_post_out, pass.layer, y);
  return y;
}

// The stream with what a half adds to it: normed and scaled where the model
// does so.
at::Tensor added(const BlockPass& pass, Role half, const at::Tensor& stream,
                 const at::Tensor& out) {
  const auto& [spec, w, layer, rotary, listener, edits, state] = pass;
  const bool is_first = half == Role::ln1;
  const Norm& norm = is_first ? w.ln1_post : w.ln2_post;
  at::Tensor sum = out;
  if (const at::Tensor& taps = is_first ? w.relative.attn_conv : w.relative.mlp_conv;
      taps.defined())
    sum = residual_convolution(sum, taps);
  if (norm.exists() && !spec.post_norm) sum = post_normed(pass, is_first, sum);
  if (spec.residual_scale != 1) sum = sum * spec.residual_scale;
  listener.on_tap(is_first ? Site::attn_out : Site::mlp_out, layer, sum);
  if (state.read.take.defined()) return write_streams(std::exchange(state.read, {}), stream, sum);
  sum = is_first && spec.starts_depth_block(layer) ? restarted(pass, stream, sum) : stream + sum;
  if (!spec.post_norm) return sum;
  listener.on_tap(is_first ? Site::resid_mid_sum : Site::resid_post_sum, layer, sum);
  return post_normed(pass, is_first, sum);
}

// What a layer makes of its own input, added behind the MLP.
at::Tensor with_layer_input(const BlockPass& pass, const at::Tensor& x) {
  const auto& [spec, w, layer, rotary, listener, edits, state] = pass;
  if (!w.per_layer_gate.defined()) return x;
  const at::Tensor own = state.layer_inputs.select(2, layer);
  const at::Tensor gated =
      activate(spec.activation, linear_layer(x, w.per_layer_gate)).to(own.scalar_type()) * own;
  const at::Tensor add = apply_norm(w.per_layer_post, linear_layer(gated, w.per_layer_out)).y;
  listener.on_tap(Site::per_layer_add, layer, add);
  return x + add;
}

}  // namespace

at::Tensor rotate(const at::Tensor& x, const RotaryTable& rotary) {
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

RotaryTable rotary_table(const RopeFrequencies& frequencies, int seq_len, at::Device device) {
  const auto half = static_cast<std::int64_t>(frequencies.inverse.size());
  const at::Tensor inverse = at::tensor(frequencies.inverse, at::kFloat);
  const at::Tensor positions = at::arange(seq_len, at::kFloat);
  const at::Tensor angles = at::outer(positions, inverse).view({seq_len, 1, half});
  const at::Tensor cos = angles.cos() * frequencies.attention_scaling,
                   sin = angles.sin() * frequencies.attention_scaling;
  return {at::cat({cos, cos}, -1).to(device), at::cat({-sin, sin}, -1).to(device)};
}

NormOutput Interventions::on_norm(Role /*role*/, int /*layer*/, const at::Tensor& x,
                                  const Norm& norm) {
  return apply_norm(norm, x);
}

at::Tensor Interventions::on_gate(int /*layer*/, const at::Tensor& gate, const at::Tensor& up,
                                  Activation own) {
  return gated_unit(own, gate, up);
}

at::Tensor norm_input(const at::Tensor& x, const at::Tensor& pre_gain) {
  return pre_gain.defined() ? (x * pre_gain).to(x.scalar_type()) : x;
}

at::Tensor residual_state(const BlockPass& pass, Site site, const at::Tensor& x) {
  const at::Tensor state = pass.edits.on_residual(site, pass.layer, x);
  pass.listener.on_tap(site, pass.layer, state);
  return state;
}

void tap_streams(TapListener& listener, Site norm, int layer, const StreamRead& read) {
  if (!read.gate.defined() && !read.pre.defined()) return;
  const auto tap = [&](int place, const at::Tensor& value) {
    if (value.defined())
      listener.on_tap(static_cast<Site>(static_cast<int>(norm) + place), layer, value);
  };
  tap(0, read.normed);
  tap(1, read.gate);
  tap(2, read.pre);
  tap(3, read.mixed);
  tap(read.gate.defined() ? 4 : 5, read.take);
  tap(6, read.comb);
}

at::Tensor heads_of(const at::Tensor& x, std::int64_t first, std::int64_t heads, std::int64_t d) {
  return x.narrow(-1, first, heads * d).unflatten(-1, {heads, d});
}

at::Tensor attend(const BlockPass& pass, const at::Tensor& n1, at::Tensor rot_q,
                  const at::Tensor& rot_k, const at::Tensor& v, const AttentionParts& parts) {
  const auto& [spec, w, layer, rotary, listener, edits, state] = pass;
  if (spec.query_growth != 0) {
    const at::Tensor t = at::arange(rot_q.size(1), rot_q.options().dtype(at::kFloat));
    const at::Tensor growth =
        (t / spec.query_growth_context).floor_().log1p_().mul_(spec.query_growth).add_(1);
    rot_q = (rot_q * growth.view({1, -1, 1, 1})).to(rot_q.scalar_type());
  }
  listener.on_tap(Site::rot_q, layer, rot_q);
  listener.on_tap(Site::rot_k, layer, rot_k);
  const at::Tensor own_sink =
      w.sink.defined() ? w.sink.unsqueeze(1).expand({-1, rot_q.size(1)}) : at::Tensor();
  const AttentionCall call{
      rot_q[0],
      rot_k[0],
      v[0],
      spec.scale_of(layer),
      spec.bidirectional ? kAllKeys : spec.window[static_cast<std::size_t>(layer)],
      edits.on_attention(layer),
      spec.score_cap,
      parts.sink.defined() ? parts.sink : own_sink,
      parts.selected,
      parts.r,
      parts.profiles,
      parts.entries};
  at::Tensor z = listener.on_attention(layer, call);
  if (!z.defined()) return {};
  if (parts.behind) z = parts.behind(z.unsqueeze(0))[0];
  return edits.on_z(layer, z.to(n1.scalar_type()).unsqueeze(0), n1);
}

at::Tensor attention_output(const BlockPass& pass, const at::Tensor& given,
                            const at::Tensor& gate) {
  at::Tensor z = given;
  if (gate.defined()) {
    const at::Tensor share = gate.to(at::kFloat).sigmoid().unflatten(-1, {z.size(2), z.size(3)});
    pass.listener.on_tap(Site::attn_gate, pass.layer, share);
    z = (z * share).to(z.scalar_type());
  }
  pass.listener.on_tap(Site::z, pass.layer, z);
  at::Tensor flat = z.flatten(2);
  if (pass.w.o_down.defined()) {  // [g, r, H·d_v / g], a product a group
    const at::Tensor groups = flat[0].unflatten(-1, {pass.w.o_down.size(0), -1}).transpose(0, 1);
    flat = groups.bmm(pass.w.o_down.transpose(1, 2)).transpose(0, 1).flatten(1).unsqueeze(0);
  }
  return linear_layer(flat, pass.w.o, pass.w.o_bias);
}

namespace {

at::Tensor dense_mlp(const BlockPass& pass, const at::Tensor& n2) {
  const auto& [spec, w, layer, rotary, listener, edits, state] = pass;
  const at::Tensor gate_up = linear_layer(n2, w.gate_up, w.gate_up_bias);
  const std::int64_t width = spec.mlp_of(layer);
  const at::Tensor gate = gate_up.narrow(-1, 0, width);
  listener.on_tap(Site::mlp_pre, layer, gate);
  at::Tensor up;
  if (spec.mlp_gated) {
    up = gate_up.narrow(-1, width, width);
    listener.on_tap(Site::mlp_pre_linear, layer, up);
  }
  const at::Tensor hidden = edits.on_gate(layer, gate, up, spec.activation);
  listener.on_tap(Site::mlp_post, layer, hidden);
  return linear_layer(hidden, w.down, w.down_bias);
}

bool serves_later_layers(const ArchSpec& spec, int layer) {
  for (int later = layer + 1; later < spec.n_layers && !spec.kv_source.empty(); ++later)
    if (spec.source_of(later) == layer) return true;
  return false;
}

// Queries and keys through their norms, tapped.
void norm_heads(const BlockPass& pass, at::Tensor& q, at::Tensor& k) {
  const auto& [spec, w, layer, rotary, listener, edits, state] = pass;
  const bool whole = spec.qk_norm == QkNorm::whole;
  const auto normed = [&](const Norm& norm, Site site, at::Tensor& x) {
    if (!norm.exists() || !x.defined()) return;
    const std::int64_t heads = x.size(2), d = x.size(3);
    const at::Tensor y = apply_norm(norm, whole ? x.flatten(2) : x).y;
    listener.on_tap(site, layer, y);
    x = whole ? y.unflatten(-1, {heads, d}) : y;
  };
  normed(w.q_norm, Site::q_norm, q);
  normed(w.k_norm, Site::k_norm, k);
}

// Rotated keys, and values, of a layer that has its own.
std::pair<at::Tensor, at::Tensor> own_keys_values(const BlockPass& pass, const at::Tensor& k,
                                                  at::Tensor v) {
  const auto& [spec, w, layer, rotary, listener, edits, state] = pass;
  if (spec.value_norm) {
    v = unit_rms(v, spec.norm_eps);
    listener.on_tap(Site::v_norm, layer, v);
  }
  if (spec.value_scale != 1) v = v * spec.value_scale;
  listener.on_tap(Site::k, layer, k);
  std::pair<at::Tensor, at::Tensor> both{rotate(k, rotary), v};
  if (serves_later_layers(spec, layer)) state.keys_values[layer] = both;
  return both;
}

at::Tensor softmax_attention(const BlockPass& pass, const at::Tensor& n1) {
  const auto& [spec, w, layer, rotary, listener, edits, state] = pass;
  const bool own_keys = spec.has_own_keys(layer), own_values = spec.has_own_values(layer);
  const std::int64_t H = spec.n_heads, G = spec.kv_heads(layer), d = spec.head_dim_of(layer),
                     d_v = spec.d_value_of(layer);
  const at::Tensor qkv = linear_layer(n1, w.qkv, w.qkv_bias);
  at::Tensor q = heads_of(qkv, 0, H, d), k, v;
  if (own_keys) v = k = heads_of(qkv, H * d, G, d);  // the values too, where there are none
  if (own_values) v = heads_of(qkv, (H + G) * d, G, d_v);
  norm_heads(pass, q, k);
  listener.on_tap(Site::q, layer, q);
  const auto [rot_k, values] =
      own_keys ? own_keys_values(pass, k, v) : state.keys_values.at(spec.source_of(layer));
  listener.on_tap(Site::v, layer, values);
  AttentionParts parts;
  if (spec.has_index(layer)) parts.selected = indexed_blocks(pass, n1);
  const at::Tensor z = attend(pass, n1, rotate(q, rotary), rot_k, values, parts);
  if (!z.defined()) return {};
  const at::Tensor gate =
      spec.attn_gate ? qkv.narrow(-1, (H + G) * d + G * d_v, H * d_v) : at::Tensor();
  return attention_output(pass, z, gate);
}

at::Tensor mix_tokens(const BlockPass& pass, const at::Tensor& n1, const at::Tensor& seen) {
  switch (pass.spec.mixer(pass.layer)) {
    case Mixer::latent:
      return latent_attention(pass, n1);
    case Mixer::delta:
      return delta_net(pass, n1);
    case Mixer::relative:
      return relative_attention(pass, n1, seen);
    case Mixer::shared:
      return shared_attention(pass, n1);
    case Mixer::attention:
      break;
  }
  return softmax_attention(pass, n1);
}

}  // namespace

at::Tensor half_input(const BlockPass& pass, Role half, const at::Tensor& stream) {
  if (pass.spec.depth_block > 0) return depth_input(pass, half, stream);
  // What was read is kept until the half is written: not the state itself, which would outlive it.
  if (!pass.spec.has_streams()) return stream;
  const bool is_first = half == Role::ln1;
  pass.state.read = read_streams(pass.spec, is_first ? pass.w.mix1 : pass.w.mix2, stream);
  tap_streams(pass.listener, is_first ? Site::hyper_attn_norm : Site::hyper_mlp_norm, pass.layer,
              pass.state.read);
  return pass.state.read.mixed;
}

at::Tensor attention_out(const BlockPass& pass, const at::Tensor& seen) {
  const at::Tensor& w_pre = pass.w.ln1_pre;
  return mix_tokens(pass, normed(pass, Role::ln1, pass.w.ln1, w_pre, input_of(seen, 0)), seen);
}

at::Tensor after_attention(const BlockPass& pass, const at::Tensor& x, const at::Tensor& out) {
  return added(pass, Role::ln1, x, out);
}

at::Tensor post_norm_input(const ArchSpec& spec, const at::Tensor& x, const at::Tensor& out) {
  if (!spec.post_norm) return out;
  return x + (spec.residual_scale != 1 ? out * spec.residual_scale : out);
}

namespace {

// Experts beside the dense MLP, each behind a norm of its own; the router reads
// the stream.
at::Tensor both_mlps(const BlockPass& pass, const at::Tensor& n2, const at::Tensor& seen) {
  const auto& [spec, w, layer, rotary, listener, edits, state] = pass;
  const at::Tensor dense = apply_norm(w.ln2_post_dense, dense_mlp(pass, n2)).y;
  const at::Tensor routed = unit_rms(seen, spec.norm_eps).to(at::kFloat) * w.router_scale /
                            std::sqrt(static_cast<double>(spec.d_model));
  const at::Tensor n = apply_norm(w.ln2_experts, seen).y;
  return dense +
         apply_norm(w.ln2_post_experts, moe_block(pass, n, routed.to(seen.scalar_type()))).y;
}

at::Tensor feed_forward(const BlockPass& pass, const at::Tensor& n2, const at::Tensor& seen) {
  if (!pass.w.experts) return dense_mlp(pass, n2);
  return pass.spec.moe.beside_dense ? both_mlps(pass, n2, seen) : moe_block(pass, n2, n2);
}

}  // namespace

at::Tensor mlp_out(const BlockPass& pass, const at::Tensor& seen) {
  return feed_forward(pass, normed(pass, Role::ln2, pass.w.ln2, pass.w.ln2_pre, seen), seen);
}

at::Tensor after_mlp(const BlockPass& pass, const at::Tensor& mid, const at::Tensor& out) {
  const at::Tensor x = with_layer_input(pass, added(pass, Role::ln2, mid, out));
  return pass.w.layer_scale.defined() ? (x * pass.w.layer_scale).to(x.scalar_type()) : x;
}

}  // namespace sinkscope
