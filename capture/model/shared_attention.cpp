// SPDX-License-Identifier: GPL-3.0-or-later
// DeepSeek-V4: one head is key and value of all query heads; beside a window of tokens, queries see
// compressed entries, one a window of tokens.
#include <cmath>
#include <limits>

#include "capture/model/blocks.h"
#include "capture/model/linear.h"

namespace sinkscope {
namespace {

// The last dims of a head are rotary and lie in neighboring pairs; rotate-half wants all firsts,
// then all seconds. They stay so until turned back.
at::Tensor turned(const at::Tensor& x, const RotaryTable& rotary) {
  const std::int64_t n = rotary.cos.size(-1), plain = x.size(-1) - n;
  const at::Tensor pairs =
      x.narrow(-1, plain, n).unflatten(-1, {-1, 2}).transpose(-1, -2).flatten(-2);
  return at::cat({x.narrow(-1, 0, plain), rotate(pairs, rotary)}, -1);
}

// Values carry the rotation of their keys: their sum is turned back at the query's position.
at::Tensor turned_back(const at::Tensor& x, const RotaryTable& rotary) {
  const std::int64_t n = rotary.cos.size(-1), plain = x.size(-1) - n;
  const at::Tensor halves = rotate(x.narrow(-1, plain, n), {rotary.cos, -rotary.sin});
  return at::cat(
      {x.narrow(-1, 0, plain), halves.unflatten(-1, {2, -1}).transpose(-1, -2).flatten(-2)}, -1);
}

// The first position of each of the n windows of m tokens.
RotaryTable first_of_each(const RotaryTable& rotary, std::int64_t n, std::int64_t m) {
  const auto first = [&](const at::Tensor& table) {
    return table.narrow(0, 0, n * m).unflatten(0, {n, m}).select(1, 0).contiguous();
  };
  return {first(rotary.cos), first(rotary.sin)};
}

}  // namespace

at::Tensor compressed_entries(const at::Tensor& values, const at::Tensor& gates,
                              const at::Tensor& place, bool sees_two) {
  const std::int64_t m = place.size(0), n = values.size(0) / m;
  const auto windows = [&](const at::Tensor& x) {  // [n, m, c·d]
    return x.narrow(0, 0, n * m).unflatten(0, {n, m}).to(at::kFloat);
  };
  at::Tensor v = windows(values), g = windows(gates) + place;
  if (sees_two) {
    const std::int64_t d = v.size(-1) / 2;
    // The first half of the channels speaks to the next window, the second to its own.
    const auto both = [&](const at::Tensor& x, double absent) {
      const at::Tensor none = at::full({1, m, d}, absent, x.options());
      const at::Tensor before = at::cat({none, x.narrow(0, 0, n - 1).narrow(-1, 0, d)});
      return at::cat({before, x.narrow(-1, d, d)}, 1);
    };
    v = both(v, 0);
    g = both(g, -std::numeric_limits<double>::infinity());
  }
  return (v * g.softmax(1)).sum(1);
}

namespace {

// The layer's entries [1, W, d] before rotary positions, for attention or for the index.
at::Tensor entries_of(const at::Tensor& n1, const CompressorWeights& w, bool sees_two) {
  const at::Tensor made = compressed_entries(linear_layer(n1, w.kv, {})[0],
                                             linear_layer(n1, w.gate, {})[0], w.place, sees_two);
  return apply_norm(w.norm, made.to(n1.scalar_type()).unsqueeze(0)).y;
}

// Which entries each query sees of those that are complete; undefined = all.
at::Tensor chosen_entries(const BlockPass& pass, const at::Tensor& n1, const at::Tensor& latent,
                          std::int64_t n_entries) {
  const auto& [spec, w, layer, rotary, listener, edits, state] = pass;
  const IndexSpec& index = spec.index;
  if (!spec.has_index(layer) || n_entries <= index.top_k) return {};
  const int m = spec.compress_of(layer);
  const at::Tensor q = turned(
      heads_of(linear_layer(latent, w.index_q, {}), 0, index.n_heads, index.head_dim), rotary);
  const at::Tensor k = turned(entries_of(n1, w.index_compressor, true).unsqueeze(2),
                              first_of_each(rotary, n_entries, m));
  const at::Tensor weights = linear_layer(n1, w.index_weights, {}).to(at::kFloat) /
                             std::sqrt(static_cast<double>(index.n_heads));
  return best_keys(q[0].to(at::kFloat), k[0].select(1, 0).to(at::kFloat), weights[0], index.top_k,
                   m);
}

CompressedKeys compressed_keys(const BlockPass& pass, const at::Tensor& n1,
                               const at::Tensor& latent) {
  const int m = pass.spec.compress_of(pass.layer);
  const std::int64_t n = m > 0 ? n1.size(1) / m : 0;
  if (n == 0) return {};
  const at::Tensor own = entries_of(n1, pass.w.compressor, pass.spec.compresses_pairs(pass.layer));
  pass.listener.on_tap(Site::compressed_kv, pass.layer, own);
  const at::Tensor k = turned(own.unsqueeze(2), first_of_each(pass.rotary, n, m))[0];
  return {k, k, chosen_entries(pass, n1, latent, n), m, {}};
}

}  // namespace

at::Tensor shared_attention(const BlockPass& pass, const at::Tensor& n1) {
  const auto& [spec, w, layer, rotary, listener, edits, state] = pass;
  const std::int64_t H = spec.n_heads, d = spec.head_dim;
  const at::Tensor latent = apply_norm(w.q_a_norm, linear_layer(n1, w.q_a, {})).y;
  listener.on_tap(Site::q_latent, layer, latent);
  const at::Tensor heads = heads_of(linear_layer(latent, w.qkv, {}), 0, H, d);
  const at::Tensor q = unit_rms(heads, spec.norm_eps);
  const at::Tensor kv = apply_norm(w.k_norm, linear_layer(n1, w.kv_a, {}).unsqueeze(2)).y;
  listener.on_tap(Site::k_norm, layer, kv);
  listener.on_tap(Site::q, layer, q);
  listener.on_tap(Site::k, layer, kv);
  const at::Tensor rot_kv = turned(kv, rotary);
  listener.on_tap(Site::v, layer, rot_kv);
  AttentionParts parts;
  parts.entries = compressed_keys(pass, n1, latent);
  parts.behind = [&, &table = rotary](const at::Tensor& z) { return turned_back(z, table); };
  const at::Tensor z = attend(pass, n1, turned(q, rotary), rot_kv, rot_kv, parts);
  return z.defined() ? attention_output(pass, z, {}) : at::Tensor();
}

}  // namespace sinkscope
