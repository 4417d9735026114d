// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

namespace sinkscope {

// What a tensor is for. A role names the place in the model, not the file's word for it. Layer
// roles take a block index, the others take kNoLayer. Matrices are [out, in].
enum class Role {
  embed,
  unembed,
  pos_embed,   // [positions, D], learned
  type_embed,  // [types, D]; row 0 is added everywhere
  embed_norm,
  embed_norm_bias,
  ln_final,
  ln_final_bias,
  ln_final_pre,     // *_pre: the PreAffine gain in front of a norm
  per_layer_embed,  // [V, L·P]: inputs of every layer, a row a token
  per_layer_proj,   // [L·P, D], and the norm [P] of what it makes of the
                    // embedding
  per_layer_norm,
  depth_final_query,  // [D]: what the final norm reads, a mix over depth
  // Several residual streams, N·D their width: the mix behind the last block. gated: norm [N·D],
  // gate [r, N·D], [N·D, r]; balanced: factors [N, N·D], [N], [1].
  mix_final_norm,
  mix_final_down,
  mix_final_up,
  mix_final_factors,
  mix_final_base,
  mix_final_scale,
  rope_divisors,  // the last role without a layer
  mix1_norm,      // the same in front of attention, with what each stream takes of its output
  mix1_down,
  mix1_up,
  mix1_inject,   // gated: [N, N·D]
  mix1_factors,  // balanced: rows of the factors in, out and between, [(2+N)·N, N·D]
  mix1_base,     // [(2+N)·N], [3]
  mix1_scale,
  mix2_norm,  // and in front of the MLP
  mix2_down,
  mix2_up,
  mix2_inject,
  mix2_factors,
  mix2_base,
  mix2_scale,
  ngram_multipliers,  // hashed n-grams, P wide: [longest], [hashes], [hashes] whole numbers
  ngram_sizes,
  ngram_offsets,
  ngram_table,  // [rows, P / hashes]
  ngram_key,    // [N·D, P], [D, P], and norms [N·D]
  ngram_value,
  ngram_key_norm,
  ngram_query_norm,
  ngram_conv_norm,
  ngram_conv,  // [N·D, taps]
  ln1,
  ln1_bias,
  ln1_k,  // where keys and values have norms of their own, ln1 is that of the queries
  ln1_v,
  ln1_pre,
  ln1_gate_down,  // [r, D], [D, r]: GatedNorm, y ⊙ σ(up silu(down y))
  ln1_gate_up,
  q,
  k,
  v,
  o,
  q_bias,
  k_bias,
  v_bias,
  o_bias,
  q_norm,
  k_norm,
  attn_gate,  // [H·d_v or H, in of q]: z ⊙ σ(gate), and its bias
  attn_gate_bias,
  sink,       // [H] logits of the null route
  sink_proj,  // [H, D]: those logits for each query
  r,          // logits by distance: [H·d_r, D]; r · profiles [d_r, distances]
  profiles,
  q_scale,  // [H, d], [H, d_r]: factors on q and r
  r_scale,
  k_conv,  // [G·d, taps], the last tap is the current token
  v_conv,
  k_taps,  // [taps, G·d], the first tap is the current token; [G·taps, D]: added to them
  k_taps_proj,
  v_taps,
  v_taps_proj,
  attn_conv,  // [D, taps], of what attention and MLP put out
  mlp_conv,
  depth_attn_query,  // [D] or [3, D], for q, k and v; [D]: attention over depth
  depth_mlp_query,
  q_a,  // MLA: [q_rank, D] and its norm; q then reads the latent
  q_a_norm,
  kv_a,  // MLA: [kv_rank + rope, D] and the norm of its first part, which k and v read
  kv_a_norm,
  index_q,  // sparse selection: [n_I·d_I, q_rank or D], [d_I, D], [n_I, D], LayerNorm or RMS [d_I]
  index_k,
  index_weights,
  index_k_norm,
  index_k_norm_bias,
  index_q_norm,
  compress_kv,  // compressed keys of windows of m tokens, c = 1 or 2 windows seen: [c·d, D] twice,
  compress_gate,
  compress_place,  // [m, c·d]
  compress_norm,   // [d]
  index_kv,        // the same for the index, d_I wide
  index_gate,
  index_place,
  index_kv_norm,
  o_down,   // [groups·o_rank, H·d_v / groups]; o is then [D, groups·o_rank]
  delta_q,  // gated delta-net: [N_k·d_k, D], [N_k·d_k, D], [N_v·d_v, D]
  delta_k,
  delta_v,
  delta_gate,     // [N_v·d_v, D], of the output norm
  delta_beta,     // [N_v, D]
  delta_decay,    // [N_v, D]
  delta_gate_up,  // where the gate and the decay go through a narrow layer, its second half
  delta_decay_up,
  delta_conv,  // [channels of q, k, v, taps], the last tap is the current token
  delta_log_rate,
  delta_dt_bias,
  delta_norm,
  ln1_post,
  ln1_post_bias,
  ln2,
  ln2_bias,
  ln2_pre,
  ln2_gate_down,
  ln2_gate_up,
  gate,
  up,
  down,
  gate_bias,
  up_bias,
  down_bias,
  router,  // [E, D]
  router_bias,
  choice_bias,  // [E], only chooses
  route_table,  // [V, k]: the experts of each token
  expert_gate,  // [E·d_expert, D]: the experts' rows one below the other
  expert_up,
  expert_down,       // [E·D, d_expert]
  expert_gate_bias,  // [E, d_expert], one row an expert
  expert_up_bias,
  expert_down_bias,
  shared_gate,  // the expert that every token goes through
  shared_up,
  shared_down,
  shared_router,  // [1, D]: its share σ(w·n)
  router_scale,   // [D]: the router reads rms(x) ⊙ this / √D
  expert_scale,   // [E], a factor on each expert
  ln2_experts,    // beside a dense MLP: the norm in front of the experts, and
                  // those behind both
  ln2_post_dense,
  ln2_post_experts,
  ln2_post,
  ln2_post_bias,
  per_layer_gate,  // [P, D], [D, P], norm [D]
  per_layer_out,
  per_layer_post,
  layer_scale,  // [1]
  last = layer_scale,
};
inline constexpr int kNoLayer = -1;

const char* to_string(Role role);  // "embed", "ln1", "q", …
// Whether the role belongs to a block.
constexpr bool is_layer_role(Role role) { return role > Role::rope_divisors; }
// The bias beside a norm's gain, and whether the role is such a gain.
Role bias_of(Role norm);
bool is_norm_gain(Role role);

}  // namespace sinkscope
