// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>

#include "capture/record/site.h"
#include "core/capture_layout.h"

namespace sinkscope {
namespace {

std::vector<int> stream_dims(const ArchSpec& spec, Site site) {
  const int N = spec.streams.n, D = spec.d_model;
  switch (stream_part(site)) {
    case 0:
    case 1:
      return {kSeqLen, N, D};
    case 3:
      return {kSeqLen, D};
    case 6:
      return {kSeqLen, N, N};
    default:
      return {kSeqLen, N};
  }
}

// The smallest windows that a layer compresses; 0 = none does.
int smallest_window(const ArchSpec& spec) {
  int least = 0;
  for (const int m : spec.compress)
    if (m > 0 && (least == 0 || m < least)) least = m;
  return least;
}

// Mixes that one half of some block reads.
int most_inputs(const ArchSpec& spec, Site site) {
  int most = 1;
  const bool of_attention = site == Site::depth_attn_weights || site == Site::depth_attn_mixed;
  for (int layer = 1; of_attention && layer < spec.n_layers; ++layer)
    most = std::max(most, spec.n_inputs(layer));
  return most;
}

}  // namespace

std::vector<int> site_dims(const ArchSpec& spec, Site site) {
  if (is_stream_site(site)) return stream_dims(spec, site);
  const bool is_latent = spec.latent.kv_rank > 0;
  const int kv_heads = value_heads(spec);
  const int q_dim = is_latent ? spec.latent.nope_dim + spec.latent.rope_dim : spec.widest_head();
  switch (site) {
    case Site::q_norm:
      if (spec.qk_norm == QkNorm::whole) return {kSeqLen, spec.q_width()};
      return {spec.n_heads, kSeqLen, spec.widest_head()};
    case Site::k_norm:
      if (spec.qk_norm == QkNorm::whole) return {kSeqLen, spec.kv_width()};
      return {kv_heads, kSeqLen, spec.widest_head()};
    case Site::q:
    case Site::rot_q:
      return {spec.n_heads, kSeqLen, q_dim};
    case Site::k:
    case Site::rot_k:
      return {kv_heads, kSeqLen, q_dim};
    case Site::v:
    case Site::v_norm:
      return {kv_heads, kSeqLen, spec.d_value()};
    case Site::z:
      return {spec.n_heads, kSeqLen, spec.d_value()};
    case Site::attn_gate:
      return {spec.n_heads, kSeqLen, spec.gate_dim()};
    case Site::depth_attn_weights:
    case Site::depth_mlp_weights:
    case Site::depth_final_weights:
      return {most_inputs(spec, site), kSeqLen, spec.n_block_states(spec.n_layers) + 1};
    case Site::depth_attn_mixed:
    case Site::depth_mlp_mixed:
    case Site::depth_final_mixed:
      return {most_inputs(spec, site), kSeqLen, spec.d_model};
    case Site::q_latent:
      return {kSeqLen, spec.latent.q_rank};
    case Site::kv_latent:
      return {kSeqLen, spec.latent.kv_rank};
    case Site::linear_norm:
      return {spec.delta.n_value_heads, kSeqLen, spec.delta.value_dim};
    case Site::linear_state_norm:
      return {spec.delta.n_value_heads, kSeqLen};
    case Site::mlp_pre:
    case Site::mlp_pre_linear:
    case Site::mlp_post:
      return {kSeqLen, spec.widest_mlp()};
    case Site::mlp_router:
    case Site::mlp_router_logits:
      return {kSeqLen, spec.moe.n_experts};
    case Site::mlp_shared_gate:
      return {kSeqLen};
    case Site::per_layer_proj_norm:
      return {kSeqLen, spec.n_layers, spec.d_per_layer};
    case Site::resid_pre:
    case Site::resid_mid:
    case Site::resid_post:
    case Site::ngram_add:
    case Site::ngram_key_norm:
    case Site::ngram_query_norm:
    case Site::ngram_conv_norm:
      if (spec.has_streams()) return {kSeqLen, spec.streams.n, spec.d_model};
      return {kSeqLen, spec.d_model};
    case Site::pattern_compressed:
      return {spec.n_heads, kSeqLen, -smallest_window(spec)};
    case Site::compressed_kv:
      return {-smallest_window(spec), spec.head_dim};
    default:
      return {kSeqLen, spec.d_model};
  }
}

int value_heads(const ArchSpec& spec) {
  if (spec.latent.kv_rank > 0) return spec.n_heads;
  int most = spec.n_kv_heads;
  for (const int n : spec.layer_kv_heads) most = std::max(most, n);
  return most;
}

}  // namespace sinkscope
