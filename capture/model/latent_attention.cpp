// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/model/blocks.h"
#include "capture/model/linear.h"

namespace sinkscope {
namespace {

// The file holds rotary dims in neighboring pairs; rotate-half wants all firsts, then all seconds.
at::Tensor out_of_pairs(const at::Tensor& x) {
  return x.unflatten(-1, {-1, 2}).transpose(-1, -2).flatten(-2);
}

}  // namespace

at::Tensor latent_attention(const BlockPass& pass, const at::Tensor& n1) {
  const auto& [spec, w, layer, rotary, listener, edits, state] = pass;
  const LatentSpec& latent = spec.latent;
  const std::int64_t H = spec.n_heads, plain = latent.nope_dim, turned = latent.rope_dim,
                     d_v = spec.d_value();
  at::Tensor source = n1, normed;
  if (w.q_a.defined()) {
    const at::Tensor a = linear_layer(n1, w.q_a, {});
    normed = apply_norm(w.q_a_norm, a).y;
    listener.on_tap(Site::q_latent, layer, normed);
    source = latent.query_sees_both ? at::cat({normed, a}, -1) : normed;
  }
  const at::Tensor query = linear_layer(source, w.qkv, {});  // queries, then gates
  const at::Tensor q = heads_of(query, 0, H, plain + turned);

  const at::Tensor kv = linear_layer(n1, w.kv_a, {});
  const at::Tensor c = apply_norm(w.kv_a_norm, kv.narrow(-1, 0, latent.kv_rank)).y;
  listener.on_tap(Site::kv_latent, layer, c);
  const at::Tensor keys_values = linear_layer(c, w.kv_b, {});
  const at::Tensor k_plain = heads_of(keys_values, 0, H, plain);
  const at::Tensor v = heads_of(keys_values, H * plain, H, d_v);
  const at::Tensor k_turned = heads_of(kv, latent.kv_rank, 1, turned);  // one for all heads

  const auto rotated = [&, &table = rotary](const at::Tensor& x) {
    if (table.cos.size(-1) == 0) return x;
    return rotate(latent.rope_in_pairs ? out_of_pairs(x) : x, table);
  };
  const auto spread = [&](const at::Tensor& x) { return x.expand({-1, -1, H, -1}); };
  listener.on_tap(Site::q, layer, q);
  listener.on_tap(Site::k, layer, at::cat({k_plain, spread(k_turned)}, -1));
  listener.on_tap(Site::v, layer, v);
  const at::Tensor rot_q =
      at::cat({q.narrow(-1, 0, plain), rotated(q.narrow(-1, plain, turned))}, -1);
  const at::Tensor rot_k = at::cat({k_plain, spread(rotated(k_turned))}, -1);
  const at::Tensor z = attend(pass, n1, rot_q, rot_k, v, {indexed_keys(pass, n1, normed)});
  if (!z.defined()) return {};
  const std::int64_t gate_dim = spec.gate_dim_of(layer);
  const at::Tensor gate =
      gate_dim > 0 ? query.narrow(-1, H * (plain + turned), H * gate_dim) : at::Tensor();
  return attention_output(pass, z, gate);
}

}  // namespace sinkscope
