// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/ATen.h>

#include <functional>
#include <stop_token>

#include "capture/model/forward.h"

// Parts of a block that several kinds of block share; see forward.h for what they are given.
// An undefined result means canceled.
namespace sinkscope {

// [B, T, width] -> [B, T, heads, d], from the column `first` on.
at::Tensor heads_of(const at::Tensor& x, std::int64_t first, std::int64_t heads, std::int64_t d);

// What some models add to attention: as in AttentionCall. Undefined = the block's own sink, or
// none.
struct AttentionParts {
  at::Tensor selected = {};
  at::Tensor sink = {};
  at::Tensor r = {}, profiles = {};
  CompressedKeys entries = {};
  std::function<at::Tensor(const at::Tensor& z)> behind = {};  // of what attention puts out
};

// Softmax attention of rotated queries and keys, up to z [1, T, H, d_v]; n1 is what they were made
// of. Taps rot_q and rot_k.
at::Tensor attend(const BlockPass& pass, const at::Tensor& n1, at::Tensor rot_q,
                  const at::Tensor& rot_k, const at::Tensor& v, const AttentionParts& parts = {});

// What follows attention: z ⊙ σ(gate) with a gate [1, T, H·d_v] (undefined = none), tap, W_o, in
// front of it the narrow layer by groups of heads where there is one.
at::Tensor attention_output(const BlockPass& pass, const at::Tensor& z, const at::Tensor& gate);

// Attention of queries, keys and values from one product each, with whatever of norms, gate, sparse
// selection and shared keys the spec has.
at::Tensor softmax_attention(const BlockPass& pass, const at::Tensor& n1);

// Multi-head latent attention (DeepSeek-V2): queries from a latent, keys and values from another,
// one rotary key for all heads.
at::Tensor latent_attention(const BlockPass& pass, const at::Tensor& n1);

// Attention with logits by distance and short convolutions (Mixer::relative). n1 [1, T, D] is the
// normed input of the queries; `seen` [inputs, T, D] what the norms read: keys and values norm
// their own where the block has three norms.
at::Tensor relative_attention(const BlockPass& pass, const at::Tensor& n1, const at::Tensor& seen);

// One head that is key and value of all, beside compressed entries (DeepSeek-V4).
at::Tensor shared_attention(const BlockPass& pass, const at::Tensor& n1);
// The entries of windows of m tokens, channel by channel: Σ_j softmax_j(gate_j + place_j) value_j
// over the tokens of a window, or also those before it: then of two halves of the channels the
// first one is for the next window. values, gates [T, c·d], place [m, c·d] -> [T/m, d], float32.
at::Tensor compressed_entries(const at::Tensor& values, const at::Tensor& gates,
                              const at::Tensor& place, bool sees_two);

// The keys that each query of a sparse layer sees: positions [T, k], T = none; undefined = all.
// `latent` [1, T, q_rank] is the normed query latent.
at::Tensor indexed_keys(const BlockPass& pass, const at::Tensor& n1, const at::Tensor& latent);
// The same by blocks of index.block keys: a block's key is the mean over it, normed, at its first
// position; the best complete blocks and the incomplete last one are seen (Qwen4-Exp).
at::Tensor indexed_blocks(const BlockPass& pass, const at::Tensor& n1);
// The n_best keys of each query by Σ_h w_h relu(q_h · k · d^-1/2) among those that are complete:
// key j covers the tokens from j·span to (j+1)·span − 1. Later ones fill up where a query has
// fewer. q [T, heads, d], k [T/span, d], weights [T, heads] (undefined = 1), float32 -> [T,
// n_best].
at::Tensor best_keys(const at::Tensor& q, const at::Tensor& k, const at::Tensor& weights,
                     std::int64_t n_best, std::int64_t span = 1);

// The second half between its norms: a dense MLP, experts, or both. n2 is the half's input behind
// its norm, `seen` in front of it. A request to stop is looked at once a chunk of tokens and once
// an expert.
at::Tensor feed_forward(const BlockPass& pass, const at::Tensor& n2, const at::Tensor& seen);

// Gated delta-net: short causal convolution, linear attention with decay, gated output norm.
at::Tensor delta_net(const BlockPass& pass, const at::Tensor& n1);

// The delta rule, S <- e^g S;  S <- S + k (β (v − Sᵀk))ᵀ;  o = Sᵀq, from S = 0, in chunks.
//   q, k [H, T, d_k], v [H, T, d_v], log_decay and beta [H, T], float32 -> o [H, T, d_v]
// `state_norm` (may be null) receives ‖S‖, the root of the sum of squares, behind each token [H,
// T]. `stop` is looked at once a chunk; an undefined result means canceled.
at::Tensor delta_rule(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                      const at::Tensor& log_decay, const at::Tensor& beta, int chunk,
                      at::Tensor* state_norm = nullptr, const std::stop_token& stop = {});
// The same with a decay for each key channel, log_decay [H, T, d_k]; a chunk makes [H, chunk,
// chunk, d_k] of them.
at::Tensor channel_delta_rule(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const at::Tensor& log_decay, const at::Tensor& beta, int chunk,
                              at::Tensor* state_norm = nullptr, const std::stop_token& stop = {});

}  // namespace sinkscope
