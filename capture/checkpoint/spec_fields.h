// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <array>
#include <string_view>

#include "capture/checkpoint/arch_spec.h"

// Every field of an ArchSpec under its name, for whoever writes or reads one. `visit` has
//   field(name, value)           int, double, bool, std::string, vectors of those, optional<double>
//   choice(name, value, names)   an enum and the names of its values, in order
//   choices(name, values, names) a list of enums
//   group(name, object, f)       a struct; f(object, visit) visits its fields
//   groups(name, objects, f)     a list of structs
namespace sinkscope {

inline constexpr std::array<std::string_view, 2> kNormKinds = {"rms", "layer_norm"};
inline constexpr std::array<std::string_view, 3> kQkNorms = {"none", "per_head", "whole"};
inline constexpr std::array<std::string_view, 7> kRopeScalings = {
    "none", "linear", "dynamic", "llama3", "yarn", "longrope", "proportional"};
inline constexpr std::array<std::string_view, 4> kActivations = {"silu", "gelu", "gelu_tanh",
                                                                 "relu"};
inline constexpr std::array<std::string_view, 5> kMixers = {"attention", "latent", "delta",
                                                            "relative", "shared"};
inline constexpr std::array<std::string_view, 4> kRouterScores = {"softmax", "chosen_softmax",
                                                                  "sigmoid", "sqrt_softplus"};
inline constexpr std::array<std::string_view, 2> kStreamMixes = {"gated", "balanced"};
inline constexpr std::array<std::string_view, 3> kAttnGates = {"none", "elementwise", "headwise"};

template <class S, class V>
void visit_rope(S& rope, V& visit) {
  visit.field("theta", rope.theta);
  visit.field("rotary_dim", rope.rotary_dim);
  visit.field("partial", rope.partial);
  visit.choice("scaling", rope.scaling, kRopeScalings);
  visit.field("factor", rope.factor);
  visit.field("low_freq_factor", rope.low_freq_factor);
  visit.field("high_freq_factor", rope.high_freq_factor);
  visit.field("original_context", rope.original_context);
  visit.field("beta_fast", rope.beta_fast);
  visit.field("beta_slow", rope.beta_slow);
  visit.field("truncate", rope.truncate);
  visit.field("attention_factor", rope.attention_factor);
  visit.field("mscale", rope.mscale);
  visit.field("mscale_all_dim", rope.mscale_all_dim);
  visit.field("short_factor", rope.short_factor);
  visit.field("long_factor", rope.long_factor);
  visit.field("has_divisors", rope.has_divisors);
}

template <class S, class V>
void visit_moe(S& moe, V& visit) {
  visit.field("n_experts", moe.n_experts);
  visit.field("n_used", moe.n_used);
  visit.field("d_expert", moe.d_expert);
  visit.choice("score", moe.score, kRouterScores);
  visit.field("renormalize", moe.renormalize);
  visit.field("scale", moe.scale);
  visit.field("n_groups", moe.n_groups);
  visit.field("n_groups_used", moe.n_groups_used);
  visit.field("rejected_is_zero", moe.rejected_is_zero);
  visit.field("router_bias", moe.router_bias);
  visit.field("choice_bias", moe.choice_bias);
  visit.field("expert_bias", moe.expert_bias);
  visit.field("clamp", moe.clamp);
  visit.field("sharpness", moe.sharpness);
  visit.field("gate_cap", moe.gate_cap);
  visit.field("up_cap", moe.up_cap);
  visit.field("up_shift", moe.up_shift);
  visit.field("d_shared", moe.d_shared);
  visit.field("shared_router", moe.shared_router);
  visit.field("beside_dense", moe.beside_dense);
}

template <class S, class V>
void visit_latent(S& latent, V& visit) {
  visit.field("q_rank", latent.q_rank);
  visit.field("kv_rank", latent.kv_rank);
  visit.field("nope_dim", latent.nope_dim);
  visit.field("rope_dim", latent.rope_dim);
  visit.field("rope_in_pairs", latent.rope_in_pairs);
  visit.field("query_sees_both", latent.query_sees_both);
}

template <class S, class V>
void visit_index(S& index, V& visit) {
  visit.field("n_heads", index.n_heads);
  visit.field("head_dim", index.head_dim);
  visit.field("top_k", index.top_k);
  visit.field("block", index.block);
}

template <class S, class V>
void visit_streams(S& streams, V& visit) {
  visit.field("n", streams.n);
  visit.choice("mix", streams.mix, kStreamMixes);
  visit.field("rank", streams.rank);
  visit.field("n_rounds", streams.n_rounds);
  visit.field("eps", streams.eps);
}

template <class S, class V>
void visit_ngram(S& ngram, V& visit) {
  visit.field("width", ngram.width);
  visit.field("longest", ngram.longest);
  visit.field("n_heads", ngram.n_heads);
  visit.field("n_taps", ngram.n_taps);
  visit.field("n_shards", ngram.n_shards);
}

template <class S, class V>
void visit_delta(S& delta, V& visit) {
  visit.field("n_key_heads", delta.n_key_heads);
  visit.field("n_value_heads", delta.n_value_heads);
  visit.field("key_dim", delta.key_dim);
  visit.field("value_dim", delta.value_dim);
  visit.field("n_taps", delta.n_taps);
  visit.field("narrow", delta.narrow);
}

template <class S, class V>
void visit_relative(S& relative, V& visit) {
  visit.field("dim", relative.dim);
  visit.field("extents", relative.extents);
  visit.field("n_taps", relative.n_taps);
  visit.field("qk_limit", relative.qk_limit);
  visit.field("r_limit", relative.r_limit);
  visit.field("growth", relative.growth);
  visit.field("growth_floor", relative.growth_floor);
}

template <class S, class V>
void visit_spec(S& spec, V& visit) {
  visit.field("architecture", spec.architecture);
  visit.field("name", spec.name);
  visit.field("n_layers", spec.n_layers);
  visit.field("n_heads", spec.n_heads);
  visit.field("n_kv_heads", spec.n_kv_heads);
  visit.field("head_dim", spec.head_dim);
  visit.field("value_dim", spec.value_dim);
  visit.field("layer_kv_heads", spec.layer_kv_heads);
  visit.field("layer_head_dims", spec.layer_head_dims);
  visit.field("d_model", spec.d_model);
  visit.field("d_mlp", spec.d_mlp);
  visit.field("layer_mlps", spec.layer_mlps);
  visit.field("vocab_size", spec.vocab_size);
  visit.field("n_ctx", spec.n_ctx);
  visit.choice("norm_kind", spec.norm_kind, kNormKinds);
  visit.field("norm_eps", spec.norm_eps);
  visit.field("norm_offset", spec.norm_offset);
  visit.field("norm_bias", spec.norm_bias);
  visit.field("has_ln1", spec.has_ln1);
  visit.field("has_ln2", spec.has_ln2);
  visit.field("has_ln1_post", spec.has_ln1_post);
  visit.field("has_ln2_post", spec.has_ln2_post);
  visit.field("post_norm", spec.post_norm);
  visit.field("has_final_norm", spec.has_final_norm);
  visit.field("embed_norm", spec.embed_norm);
  visit.choice("qk_norm", spec.qk_norm, kQkNorms);
  visit.field("pre_affine", spec.pre_affine);
  visit.field("norm_gate_rank", spec.norm_gate_rank);
  visit.group("streams", spec.streams, [](auto& streams, auto& v) { visit_streams(streams, v); });
  visit.group("ngram", spec.ngram, [](auto& ngram, auto& v) { visit_ngram(ngram, v); });
  visit.field("ngram_layers", spec.ngram_layers);
  visit.field("parallel", spec.parallel);
  visit.field("embed_scale", spec.embed_scale);
  visit.field("residual_scale", spec.residual_scale);
  visit.field("logit_scale", spec.logit_scale);
  visit.field("logit_cap", spec.logit_cap);
  visit.field("learned_positions", spec.learned_positions);
  visit.field("position_offset", spec.position_offset);
  visit.field("n_types", spec.n_types);
  visit.field("d_per_layer", spec.d_per_layer);
  visit.field("layer_scale", spec.layer_scale);
  visit.field("depth_block", spec.depth_block);
  visit.choices("mixers", spec.mixers, kMixers);
  visit.field("bidirectional", spec.bidirectional);
  visit.field("qkv_bias", spec.qkv_bias);
  visit.field("o_bias", spec.o_bias);
  visit.field("value_norm", spec.value_norm);
  visit.field("keys_as_values", spec.keys_as_values);
  visit.field("kv_source", spec.kv_source);
  visit.choice("attn_gate", spec.attn_gate, kAttnGates);
  visit.field("attention_scale", spec.attention_scale);
  visit.field("score_cap", spec.score_cap);
  visit.field("value_scale", spec.value_scale);
  visit.field("query_growth", spec.query_growth);
  visit.field("query_growth_context", spec.query_growth_context);
  visit.field("sinks", spec.sinks);
  visit.field("sink_projection", spec.sink_projection);
  visit.group("rope", spec.rope, [](auto& rope, auto& v) { visit_rope(rope, v); });
  visit.groups("layer_ropes", spec.layer_ropes, [](auto& rope, auto& v) { visit_rope(rope, v); });
  visit.field("window", spec.window);
  visit.group("latent", spec.latent, [](auto& latent, auto& v) { visit_latent(latent, v); });
  visit.group("index", spec.index, [](auto& index, auto& v) { visit_index(index, v); });
  visit.group("delta", spec.delta, [](auto& delta, auto& v) { visit_delta(delta, v); });
  visit.group("relative", spec.relative,
              [](auto& relative, auto& v) { visit_relative(relative, v); });
  visit.field("delta_sigmoid", spec.delta_sigmoid);
  visit.field("compress", spec.compress);
  visit.field("compress_pairs", spec.compress_pairs);
  visit.field("o_groups", spec.o_groups);
  visit.field("o_rank", spec.o_rank);
  visit.choice("activation", spec.activation, kActivations);
  visit.field("mlp_gated", spec.mlp_gated);
  visit.field("mlp_bias", spec.mlp_bias);
  visit.group("moe", spec.moe, [](auto& moe, auto& v) { visit_moe(moe, v); });
  visit.field("moe_layers", spec.moe_layers);
  visit.field("table_layers", spec.table_layers);
  visit.field("has_head", spec.has_head);
  visit.field("n_logits", spec.n_logits);
  visit.field("tied", spec.tied);
  visit.field("bos_id", spec.bos_id);
  visit.field("eos_id", spec.eos_id);
}

}  // namespace sinkscope
