// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/hf_names.h"

namespace sinkscope {
namespace {

using Roles = std::vector<Role>;

void add(Roles& roles, bool wanted, std::initializer_list<Role> more) {
  if (wanted) roles.insert(roles.end(), more);
}

void add_norm(Roles& roles, const ArchSpec& spec, bool wanted, Role norm) {
  add(roles, wanted, {norm});
  add(roles, wanted && spec.norm_bias, {bias_of(norm)});
}

void add_relative(Roles& roles, const ArchSpec& spec, int layer) {
  const bool has_inputs = spec.n_inputs(layer) > 1;
  add(roles, has_inputs, {Role::ln1_k, Role::ln1_v});
  add(roles, true,
      {Role::q, Role::k, Role::v, Role::o, Role::r, Role::profiles, Role::q_scale, Role::r_scale});
  add(roles, !has_inputs, {Role::k_conv, Role::v_conv});
  add(roles, has_inputs, {Role::k_taps, Role::k_taps_proj, Role::v_taps, Role::v_taps_proj});
  add(roles, true, {Role::attn_conv, Role::mlp_conv});
}

// The mix of the streams in front of a half, or behind the last block, whose roles start at
// `first`.
void add_mix(Roles& roles, const ArchSpec& spec, Role first) {
  if (!spec.has_streams()) return;
  const bool is_final = first == Role::mix_final_norm;
  const auto nth = [first](int n) { return static_cast<Role>(static_cast<int>(first) + n); };
  if (spec.streams.mix == StreamMix::gated) {
    add(roles, true, {nth(0), nth(1), nth(2)});
    add(roles, !is_final, {nth(3)});
  } else {
    const int n = is_final ? 3 : 4;
    add(roles, true, {nth(n), nth(n + 1), nth(n + 2)});
  }
}

void add_ngrams(Roles& roles, const ArchSpec& spec, int layer) {
  add(roles, spec.has_ngrams(layer),
      {Role::ngram_multipliers, Role::ngram_sizes, Role::ngram_offsets, Role::ngram_table,
       Role::ngram_key, Role::ngram_value, Role::ngram_key_norm, Role::ngram_query_norm,
       Role::ngram_conv_norm, Role::ngram_conv});
}

void add_shared(Roles& roles, const ArchSpec& spec, int layer) {
  add(roles, true,
      {Role::q_a, Role::q_a_norm, Role::q, Role::k, Role::k_norm, Role::o_down, Role::o});
  add(roles, spec.compress_of(layer) > 0,
      {Role::compress_kv, Role::compress_gate, Role::compress_place, Role::compress_norm});
  add(roles, spec.has_index(layer),
      {Role::index_q, Role::index_weights, Role::index_kv, Role::index_gate, Role::index_place,
       Role::index_kv_norm});
}

void add_mixer(Roles& roles, const ArchSpec& spec, int layer) {
  switch (spec.mixer(layer)) {
    case Mixer::attention:
      add(roles, true, {Role::q, Role::o});
      add(roles, spec.has_own_keys(layer), {Role::k});
      add(roles, spec.has_own_values(layer), {Role::v});
      add(roles, spec.qkv_bias, {Role::q_bias, Role::k_bias, Role::v_bias});
      add(roles, spec.o_bias, {Role::o_bias});
      add(roles, spec.qk_norm != QkNorm::none, {Role::q_norm});
      add(roles, spec.qk_norm != QkNorm::none && spec.has_own_keys(layer), {Role::k_norm});
      add(roles, spec.has_index(layer),
          {Role::index_q, Role::index_k, Role::index_q_norm, Role::index_k_norm});
      break;
    case Mixer::shared:
      add_shared(roles, spec, layer);
      break;
    case Mixer::relative:
      add_relative(roles, spec, layer);
      break;
    case Mixer::latent:
      add(roles, spec.latent.q_rank > 0, {Role::q_a, Role::q_a_norm});
      add(roles, true, {Role::q, Role::kv_a, Role::kv_a_norm, Role::k, Role::v, Role::o});
      add(roles, spec.index.n_heads > 0,
          {Role::index_q, Role::index_k, Role::index_weights, Role::index_k_norm,
           Role::index_k_norm_bias});
      break;
    case Mixer::delta:
      add(roles, true,
          {Role::delta_q, Role::delta_k, Role::delta_v, Role::delta_gate, Role::delta_beta,
           Role::delta_decay, Role::delta_conv, Role::delta_log_rate, Role::delta_dt_bias,
           Role::delta_norm, Role::o});
      add(roles, spec.delta.narrow > 0, {Role::delta_gate_up, Role::delta_decay_up});
      return;
  }
  add(roles, spec.gate_dim() > 0, {Role::attn_gate});
  add(roles, spec.gate_dim() > 0 && spec.qkv_bias, {Role::attn_gate_bias});
  add(roles, spec.has_sink(layer), {spec.sink_projection ? Role::sink_proj : Role::sink});
}

void add_mlp(Roles& roles, const ArchSpec& spec, int layer) {
  const MoeSpec& moe = spec.moe;
  if (!spec.has_experts(layer) || moe.beside_dense) {
    add(roles, spec.mlp_gated, {Role::gate});
    add(roles, true, {Role::up, Role::down});
    add(roles, spec.mlp_bias && spec.mlp_gated, {Role::gate_bias});
    add(roles, spec.mlp_bias, {Role::up_bias, Role::down_bias});
  }
  if (!spec.has_experts(layer)) return;
  add(roles, moe.beside_dense,
      {Role::router_scale, Role::expert_scale, Role::ln2_experts, Role::ln2_post_dense,
       Role::ln2_post_experts});
  add(roles, true, {Role::router, Role::expert_gate, Role::expert_up, Role::expert_down});
  add(roles, moe.router_bias, {Role::router_bias});
  add(roles, moe.choice_bias && !spec.has_route_table(layer), {Role::choice_bias});
  add(roles, spec.has_route_table(layer), {Role::route_table});
  add(roles, moe.expert_bias,
      {Role::expert_gate_bias, Role::expert_up_bias, Role::expert_down_bias});
  add(roles, moe.d_shared > 0, {Role::shared_gate, Role::shared_up, Role::shared_down});
  add(roles, moe.shared_router, {Role::shared_router});
}

}  // namespace

std::vector<Role> layer_roles(const ArchSpec& spec, int layer) {
  Roles roles;
  add_ngrams(roles, spec, layer);
  add_mix(roles, spec, Role::mix1_norm);
  add_mix(roles, spec, Role::mix2_norm);
  add_norm(roles, spec, spec.has_ln1, Role::ln1);
  add(roles, spec.has_norm_gate(layer, Role::ln1), {Role::ln1_gate_down, Role::ln1_gate_up});
  add_mixer(roles, spec, layer);
  add_norm(roles, spec, spec.has_ln1_post, Role::ln1_post);
  add_norm(roles, spec, spec.has_ln2, Role::ln2);
  add(roles, spec.has_norm_gate(layer, Role::ln2), {Role::ln2_gate_down, Role::ln2_gate_up});
  add_mlp(roles, spec, layer);
  add_norm(roles, spec, spec.has_ln2_post, Role::ln2_post);
  add(roles, spec.pre_affine && spec.has_ln1, {Role::ln1_pre});
  add(roles, spec.pre_affine && spec.has_ln2, {Role::ln2_pre});
  add(roles, spec.d_per_layer > 0,
      {Role::per_layer_gate, Role::per_layer_out, Role::per_layer_post});
  add(roles, spec.layer_scale, {Role::layer_scale});
  add(roles, spec.depth_block > 0 && layer > 0, {Role::depth_attn_query});
  add(roles, spec.depth_block > 0, {Role::depth_mlp_query});
  return roles;
}

std::vector<Role> outer_roles(const ArchSpec& spec) {
  Roles roles;
  add(roles, spec.learned_positions, {Role::pos_embed});
  add(roles, spec.n_types > 0, {Role::type_embed});
  add_norm(roles, spec, spec.embed_norm, Role::embed_norm);
  add(roles, spec.d_per_layer > 0,
      {Role::per_layer_embed, Role::per_layer_proj, Role::per_layer_norm});
  add_mix(roles, spec, Role::mix_final_norm);
  add_norm(roles, spec, spec.has_final_norm, Role::ln_final);
  add(roles, spec.pre_affine && spec.has_final_norm, {Role::ln_final_pre});
  add(roles, spec.depth_block > 0, {Role::depth_final_query});
  add(roles, spec.rope.has_divisors, {Role::rope_divisors});
  return roles;
}

}  // namespace sinkscope
