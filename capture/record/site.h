// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "capture/checkpoint/arch_spec.h"

namespace sinkscope {

// Where the forward pass can be listened to. A tap is (site, layer). The text is TransformerLens'
// hook name without "blocks.N."; `*.hook_out` are our additions: the norm's output with its gain.
enum class Site {
  resid_pre,
  resid_mid,
  resid_post,
  ln1_out,
  ln2_out,
  ln_final_out,
  attn_out,
  mlp_out,
  q_norm,
  k_norm,  // output of the per-head norms, before RoPE
  q,
  k,
  v,  // before RoPE, after bias and q/k norm
  rot_q,
  rot_k,
  z,
  mlp_pre,
  mlp_pre_linear,  // gate and up projections
  mlp_post,        // input of the down projection
  ln1_post_out,
  ln2_post_out,  // norms of what a sub-layer puts out, before it is added
  ln1_gate,
  ln2_gate,   // gates of gated norms, after σ
  attn_gate,  // gate of z, after σ
  q_latent,
  kv_latent,          // MLA: outputs of the latent norms
  linear_norm,        // a delta-net's gated output norm
  mlp_router,         // weights as used, 0 where a token does not go
  mlp_router_logits,  // before softmax or σ
  mlp_shared_gate,    // share of the shared expert, after σ
  // Several residual streams, in front of attention, of the MLP and behind the last block: the
  // gated mix's norm and gate or the balanced one's factors, what is read, and how the streams take
  // what comes out (streams.h).
  hyper_attn_norm,
  hyper_attn_gate,
  hyper_attn_pre,
  hyper_attn_mixed,
  hyper_attn_inject,
  hyper_attn_post,
  hyper_attn_comb,
  hyper_mlp_norm,
  hyper_mlp_gate,
  hyper_mlp_pre,
  hyper_mlp_mixed,
  hyper_mlp_inject,
  hyper_mlp_post,
  hyper_mlp_comb,
  hyper_final_norm,
  hyper_final_gate,
  hyper_final_pre,
  hyper_final_mixed,
  ngram_add,           // what hashed n-grams add to the streams in front of a block
  pattern_compressed,  // attention to compressed entries
  compressed_kv,       // those entries, before rotary positions
  resid_mid_sum,
  resid_post_sum,  // post-norm: the sums that the norms of the stream read
  v_norm,          // v / rms(v) of each head
  per_layer_add,   // what a layer adds from an input of its own
  ln1_k_out,
  ln1_v_out,  // norms of what keys and values are made of, where they have their own
  depth_attn_weights,
  depth_attn_mixed,   // attention over depth: weights of the closed sums and, last, of the stream;
  depth_mlp_weights,  // and the mix that attention, MLP and the final norm read
  depth_mlp_mixed,
  depth_final_weights,
  depth_final_mixed,
  linear_state_norm,     // ‖S_t‖ of the state of linear attention behind each token
  embed_norm,            // norm of the embedding; what enters block 0
  per_layer_proj_norm,   // norm of what the layers' own inputs are made of, all layers together
  ln2_post_dense_out,    // experts beside a dense MLP: norms behind the dense part,
  ln2_experts_out,       // in front of the experts
  ln2_post_experts_out,  // and behind them;
  router_norm,           // x / rms(x), which the router reads
  ngram_key_norm,
  ngram_query_norm,
  ngram_conv_norm,  // norms inside hashed n-grams
};

// The enum from end to end.
inline constexpr auto kAllSites = [] {
  std::array<Site, static_cast<std::size_t>(Site::ngram_conv_norm) + 1> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<Site>(i);
  return all;
}();

const char* hook_name(Site site);  // "hook_resid_pre", "attn.hook_q"
std::optional<Site> site_of_hook(const std::string& hook);

// Which part of a mix of several residual streams the site is, in the order of the enum from its
// norm on; −1 = none. And whether it is one.
int stream_part(Site site);
bool is_stream_site(Site site);
// Whether a model of this architecture has the site at all: in some block, in this block.
bool has_site(const ArchSpec& spec, Site site);
bool has_site(const ArchSpec& spec, Site site, int layer);
// Shape of one layer's tensor; kSeqLen and −m as in core/capture_layout.h. Heads come first.
std::vector<int> site_dims(const ArchSpec& spec, Site site);
// Value heads of the attention statistics: the most that a layer has; MLA has one a query head.
int value_heads(const ArchSpec& spec);
// Sites whose statistics every capture has.
bool has_statistics(Site site);
// Whether the site lies in front of the first block or behind the last one, and so has no block.
bool is_outside_blocks(Site site);
// Small taps that every capture has: weights of attention over depth, [inputs, T, states], and
// norms of the states of linear attention.
bool is_always_recorded(Site site);
// Block indices at which the site exists, or {-1} after the last block.
std::vector<int> site_layers(const ArchSpec& spec, Site site);

}  // namespace sinkscope
