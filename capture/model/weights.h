// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <vector>

#include "capture/checkpoint/model_files.h"
#include "capture/model/moe.h"
#include "capture/model/ngrams.h"
#include "capture/model/norm.h"
#include "capture/model/streams.h"

namespace sinkscope {

// What attention with logits by distance has of its own (Mixer::relative). The three products read
// one normed input, or one each.
struct RelativeWeights {
  Norm k_norm, v_norm;          // of the inputs of keys and values, where they have their own
  at::Tensor query;             // rows q [H·d], gate [H·d_v], r [H·d_r], sink logits [H]
  at::Tensor key, value;        // rows k [G·d] and, where its taps depend on the input, [G·taps]
  at::Tensor k_conv, v_conv;    // [G·d, taps] float32; or, first tap first:
  at::Tensor k_taps, v_taps;    // [taps, G·d] float32
  at::Tensor q_scale, r_scale;  // [H, d], [H, d_r] float32
  at::Tensor profiles;          // [d_r, distances] float32
  at::Tensor attn_conv, mlp_conv;  // [D, taps] float32, of what the halves put out
};

// What compressed keys are made with (shared_attention.cpp).
struct CompressorWeights {
  at::Tensor kv, gate;  // [c·d, D]
  at::Tensor place;     // [m, c·d] float32
  Norm norm;
};

// The weights of one block on the device. Rows are torch's [out, in]. Absent parts are undefined
// tensors. q, k and v lie in one matrix, gate and up in another: one product each.
struct LayerWeights {
  Norm ln1, ln2, ln1_post, ln2_post;
  at::Tensor ln1_pre, ln2_pre;  // [D] what the norms' inputs are multiplied by, float32
  at::Tensor qkv, qkv_bias;     // rows q [H·d], k [G·d], v [G·d_v] and the gate of z [H·d_v],
                                // those that the layer has
  Norm q_norm, k_norm;          // over [d], or over all heads at once
  at::Tensor q_a, kv_a, kv_b;   // MLA; qkv is then q and gate over the latent, kv_b k and v;
                                // of shared mixers qkv is q, kv_a the one key
  Norm q_a_norm, kv_a_norm;
  at::Tensor delta_conv;  // [channels, taps] float32; qkv is then q, k, v, gate, β, decay
  at::Tensor delta_log_rate, delta_dt_bias;  // float32
  Norm delta_norm;
  at::Tensor index_q, index_k, index_weights;  // sparse selection
  Norm index_q_norm, index_k_norm;
  RelativeWeights relative;
  at::Tensor depth_attn_query, depth_mlp_query;  // [inputs, D] float32: attention over depth
  at::Tensor delta_gate_up, delta_decay_up;      // second halves of narrow gates and decays
  CompressorWeights compressor, index_compressor;
  at::Tensor sink;                   // [H] float32
  at::Tensor o_down;                 // [groups, r, H·d_v / groups]; o is then [D, groups·r]
  at::Tensor o, o_bias;              // [D, H·d_v]
  at::Tensor gate_up, gate_up_bias;  // [2·d_mlp, D] rows gate, then up; without a gate: up alone
  at::Tensor down, down_bias;        // [D, d_mlp]
  at::Tensor router, router_bias;    // [E, D], [E]
  at::Tensor choice_bias;            // [E] float32
  at::Tensor route_table;            // [V, k] long: the experts of each token
  Expert shared;                     // the expert that every token goes through
  at::Tensor shared_router;          // [1, D]
  std::shared_ptr<ExpertSource> experts;  // null in a block without
  at::Tensor router_scale, expert_scale;  // [D], [E] float32
  Norm ln2_experts, ln2_post_dense, ln2_post_experts;
  at::Tensor per_layer_gate, per_layer_out;  // [P, D], [D, P]
  Norm per_layer_post;
  at::Tensor layer_scale;  // [1] float32
  StreamMixer mix1, mix2;  // of several residual streams
  std::shared_ptr<const Ngrams> ngrams;
  std::int64_t n_bytes = 0;
};

// Hands out blocks in order and reads one block ahead on a thread of its own. Blocks are kept up to
// `keep_bytes` (for prompts that come in several groups); beyond that a block is dropped when the
// caller lets go of it. Experts are read when a token goes to them; those of kept blocks stay as
// far as the same budget has room when the block's turn ends.
class WeightStore {
 public:
  WeightStore(const ModelFiles& model, at::Device device, at::ScalarType dtype,
              std::int64_t keep_bytes);
  ~WeightStore();

  // Block `layer`, waiting for it if need be; starts reading `layer + 1`.
  std::shared_ptr<const LayerWeights> layer(int layer);
  // Starts reading a block without waiting for it.
  void prefetch(int layer);

  // Seconds that layer() had to wait for the reading thread.
  double seconds_waited() const { return seconds_waited_; }

 private:
  // Keeps as many experts of the block that was in use as the budget has room for.
  void settle_experts();

  const ModelFiles& model_;
  at::Device device_;
  at::ScalarType dtype_;
  std::int64_t keep_bytes_, kept_bytes_ = 0;  // kept: blocks, and the experts of settled ones
  int in_use_ = -1;                           // a kept block whose experts are not settled yet
  double seconds_waited_ = 0;
  std::map<int, std::shared_ptr<const LayerWeights>> kept_;
  std::map<int, std::future<std::shared_ptr<const LayerWeights>>> pending_;
};

}  // namespace sinkscope
