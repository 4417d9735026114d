// SPDX-License-Identifier: GPL-3.0-or-later
#include <utility>

#include "capture/model/blocks.h"
#include "capture/model/linear.h"
#include "capture/model/norm.h"

namespace sinkscope {

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
    const at::Tensor share = gate.to(at::kFloat).sigmoid().unflatten(-1, {z.size(2), -1});
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

}  // namespace

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
  const std::int64_t gate_dim = spec.gate_dim_of(layer);
  const at::Tensor gate =
      gate_dim > 0 ? qkv.narrow(-1, (H + G) * d + G * d_v, H * gate_dim) : at::Tensor();
  return attention_output(pass, z, gate);
}

}  // namespace sinkscope
