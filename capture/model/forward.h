// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/ATen.h>

#include <map>
#include <stop_token>
#include <utility>
#include <vector>

#include "capture/checkpoint/arch_spec.h"
#include "capture/model/attention.h"
#include "capture/model/interventions.h"
#include "capture/model/rope.h"
#include "capture/model/weights.h"
#include "capture/record/site.h"

namespace sinkscope {

// Who listens to the forward pass. Called on the engine's thread, in execution order; tensors are
// [B, T, D] or [B, T, heads, d], never changed afterwards by the pass. A listener that wants
// nothing costs nothing.
class TapListener {
 public:
  virtual ~TapListener() = default;
  virtual void on_tap(Site site, int layer, const at::Tensor& value) = 0;
  // Whether on_tap() does anything with this site; asked where a value is made for the tap alone.
  virtual bool wants(Site /*site*/, int /*layer*/) const { return true; }
  // Asked once a chunk by what runs long beside attention.
  virtual std::stop_token stop() const { return {}; }
  // Attention of one block: the listener runs `call` through the body of its choice, keeping the
  // statistics it wants, and returns z [T, H, d]; undefined = canceled.
  virtual at::Tensor on_attention(int layer, const AttentionCall& call) = 0;
  // What a norm reads, where that is not the residual state itself: with PreAffine, of a mix over
  // depth, and behind a half.
  virtual void on_norm_input(Role /*role*/, int /*layer*/, const at::Tensor& /*x*/) {}
  // The pass goes on in the middle, with the residual state that was tapped last.
  virtual void on_resume(const at::Tensor& /*stream*/) {}
};

// cos of every position, [T, 1, rotary_dim], its halves equal, and sin with the sign of
// rotate-half: [−sin | sin]. float32, already times the attention scaling.
struct RotaryTable {
  at::Tensor cos, sin;
};
RotaryTable rotary_table(const RopeFrequencies& frequencies, int seq_len, at::Device device);

// What a prompt carries from block to block beside its residual state.
struct LaneState {
  // Rotated keys and values [1, T, G, d] of layers whose heads later layers
  // use.
  std::map<int, std::pair<at::Tensor, at::Tensor>> keys_values;
  at::Tensor layer_inputs;               // [1, T, L, P]: a small input of its own for every layer
  std::vector<at::Tensor> block_states;  // [1, T, D]: sums over depth that are closed
  StreamRead read;                       // how the half at work has read several streams
  const std::vector<int>* token_ids = nullptr;
};

// Everything that a block of one prompt is run with.
struct BlockPass {
  const ArchSpec& spec;
  const LayerWeights& w;
  int layer;
  const RotaryTable& rotary;
  TapListener& listener;
  Interventions& edits;
  LaneState& state;
};

// Rotate-half over the leading dims of the table: (a, b) = (x_i, x_{i + n/2}) -> (a c − b s,
// b c + a s). x [B, T, heads, d].
at::Tensor rotate(const at::Tensor& x, const RotaryTable& rotary);

// One block, x [B, T, D] -> [B, T, D] (several residual streams: N·D, see streams.h); norms,
// biases, gates and multipliers where the spec has them:
//   n = N₁(x);  x += N₁'(Wo · Attn(RoPE(N_q(Wq n)), RoPE(N_k(Wk n)), Wv n));  x += N₂'(MLP(N₂(x)))
// (post-norm: x ← N₁'(x + …), x ← N₂'(x + …); then what the layer adds of its own input), in two
// halves, each from one residual state to the next, before that is edited or tapped. Of each half
// first what it puts out, then the state with it. A half reads `seen`: half_input() of its state,
// or the block's input in the second where the two halves are parallel. Out of place, no decision
// about gradients. Undefined = canceled.
at::Tensor attention_out(const BlockPass& pass, const at::Tensor& seen);
at::Tensor mlp_out(const BlockPass& pass, const at::Tensor& seen);
at::Tensor after_attention(const BlockPass& pass, const at::Tensor& x, const at::Tensor& out);
at::Tensor after_mlp(const BlockPass& pass, const at::Tensor& mid, const at::Tensor& out);

// What N₁' or N₂' reads of a state and what a half has put out: that, or with post-norm their sum.
at::Tensor post_norm_input(const ArchSpec& spec, const at::Tensor& x, const at::Tensor& out);

// What a half (ln1: attention, ln2: MLP) reads of the stream: the stream itself, [1, T, D], or a
// mix over depth, [inputs, T, D].
at::Tensor half_input(const BlockPass& pass, Role half, const at::Tensor& stream);

// The input with that number of a half's inputs [inputs, T, D]; where there is one, it serves all.
inline at::Tensor input_of(const at::Tensor& seen, int input) {
  return seen.size(0) == 1 ? seen : seen.narrow(0, input, 1);
}

// What a norm reads: gain₁ ⊙ x, or x itself where there is no such gain.
at::Tensor norm_input(const at::Tensor& x, const at::Tensor& pre_gain);

// Taps what a mix of streams computed; `norm` is hyper_attn_norm, hyper_mlp_norm or
// hyper_final_norm, after which the others of its place follow.
void tap_streams(TapListener& listener, Site norm, int layer, const StreamRead& read);

// A residual state as the rest of the model sees it: edited, then tapped.
at::Tensor residual_state(const BlockPass& pass, Site site, const at::Tensor& x);

}  // namespace sinkscope
