// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>

#include "capture/checkpoint/hf_names.h"
#include "capture/checkpoint/stream_shapes.h"

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
  add(roles, spec.attn_gate, {Role::attn_gate});
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

// Sizes in the config's words.
struct Words {
  const ArchSpec& spec;
  int head_dim, d_mlp;
  std::string model = fmt::format("hidden_size {}", spec.d_model);
  std::string mlp = fmt::format("intermediate_size {}", d_mlp);
  std::string q = fmt::format("num_attention_heads {} x head_dim {}", spec.n_heads, head_dim);
  std::string kv(int n) const {
    return fmt::format("num_key_value_heads {} x head_dim {}", n, head_dim);
  }
  std::string index() const {
    return fmt::format("index_n_heads {} x index_head_dim {}", spec.index.n_heads,
                       spec.index.head_dim);
  }
  std::string per_layer() const {
    return fmt::format("{} layers of hidden_size_per_layer_input {}", spec.n_layers,
                       spec.d_per_layer);
  }
  std::string experts() const {
    return fmt::format("experts {}, their width {}", spec.moe.n_experts, spec.moe.d_expert);
  }
};

ExpectedShape latent_shape(Role role, const ArchSpec& spec) {
  const LatentSpec& latent = spec.latent;
  const std::int64_t D = spec.d_model, H = spec.n_heads;
  const std::int64_t q_in = latent.q_rank == 0       ? D
                            : latent.query_sees_both ? 2 * latent.q_rank
                                                     : latent.q_rank;
  const std::string because =
      fmt::format("q_lora_rank {}, kv_lora_rank {}, heads of {} + {} dims with values of {}",
                  latent.q_rank, latent.kv_rank, latent.nope_dim, latent.rope_dim, spec.d_value());
  switch (role) {
    case Role::q:
      return {{H * (latent.nope_dim + latent.rope_dim), q_in}, because};
    case Role::k:
      return {{H * latent.nope_dim, latent.kv_rank}, because};
    case Role::v:
      return {{H * spec.d_value(), latent.kv_rank}, because};
    case Role::attn_gate:
      return {{H * spec.d_value(), q_in}, because};
    case Role::q_a:
      return {{latent.q_rank, D}, because};
    case Role::q_a_norm:
      return {{latent.q_rank}, because};
    case Role::kv_a:
      return {{latent.kv_rank + latent.rope_dim, D}, because};
    default:  // kv_a_norm
      return {{latent.kv_rank}, because};
  }
}

ExpectedShape delta_shape(Role role, const ArchSpec& spec) {
  const DeltaSpec& delta = spec.delta;
  const std::int64_t D = spec.d_model, keys = std::int64_t{1} * delta.n_key_heads * delta.key_dim,
                     values = std::int64_t{1} * delta.n_value_heads * delta.value_dim;
  const std::string because =
      fmt::format("{} key heads of {}, {} value heads of {}", delta.n_key_heads, delta.key_dim,
                  delta.n_value_heads, delta.value_dim);
  switch (role) {
    case Role::delta_q:
    case Role::delta_k:
      return {{keys, D}, because};
    case Role::delta_v:
      return {{values, D}, because};
    case Role::delta_gate:
      return {{delta.narrow > 0 ? delta.narrow : values, D}, because};
    case Role::delta_beta:
      return {{delta.n_value_heads, D}, because};
    case Role::delta_decay:
      return {{delta.narrow > 0 ? delta.narrow : delta.n_value_heads, D}, because};
    case Role::delta_gate_up:
    case Role::delta_decay_up:
      return {{values, delta.narrow}, because};
    case Role::delta_dt_bias:
      return {{delta.narrow > 0 ? values : delta.n_value_heads}, because};
    case Role::delta_conv:
      return {{delta.n_channels(), delta.n_taps}, because};
    case Role::delta_norm:
      return {{delta.value_dim}, because};
    default:  // delta_log_rate
      return {{delta.n_value_heads}, because};
  }
}

ExpectedShape relative_shape(Role role, const ArchSpec& spec, int layer) {
  const RelativeSpec& relative = spec.relative;
  const std::int64_t D = spec.d_model, H = spec.n_heads, K = relative.n_taps,
                     G = spec.kv_heads(layer);
  const std::int64_t extent =
      relative.extents.empty() ? 0 : relative.extents.at(static_cast<std::size_t>(layer));
  const bool of_keys = role == Role::k_conv || role == Role::k_taps;
  const std::int64_t kv = G * (of_keys ? spec.head_dim_of(layer) : spec.d_value_of(layer));
  const std::string because = fmt::format(
      "{} heads of {}, {} key/value heads, d_rel {}, {} distances, {} taps, hidden_size {}", H,
      spec.head_dim_of(layer), G, relative.dim, extent, K, D);
  switch (role) {
    case Role::r:
      return {{H * relative.dim, D}, because};
    case Role::profiles:
      return {{relative.dim, extent}, because};
    case Role::q_scale:
      return {{H, spec.head_dim_of(layer)}, because};
    case Role::r_scale:
      return {{H, relative.dim}, because};
    case Role::k_conv:
    case Role::v_conv:
      return {{kv, K}, because};
    case Role::k_taps:
    case Role::v_taps:
      return {{K, kv}, because};
    case Role::k_taps_proj:
    case Role::v_taps_proj:
      return {{G * K, D}, because};
    default:  // attn_conv, mlp_conv
      return {{D, K}, because};
  }
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
  return roles;
}

ExpectedShape expected_shape(Role role, const ArchSpec& spec, int layer) {
  const bool in_block = is_layer_role(role);
  const int d = in_block ? spec.head_dim_of(layer) : spec.head_dim;
  const int d_v = in_block ? spec.d_value_of(layer) : spec.d_value();
  const std::int64_t d_model = spec.d_model, vocab = spec.vocab_size, P = spec.d_per_layer,
                     d_mlp = in_block ? spec.mlp_of(layer) : spec.d_mlp;
  const MoeSpec& moe = spec.moe;
  const std::int64_t E = moe.n_experts, I = moe.d_expert, H = spec.n_heads;
  const std::int64_t q_width = H * d, z_width = H * d_v;
  const int G = in_block ? spec.kv_heads(layer) : spec.n_kv_heads;
  const bool is_latent = spec.latent.kv_rank > 0;
  const Words words{spec, d, static_cast<int>(d_mlp)};
  const std::string &model = words.model, &mlp = words.mlp, &q = words.q;
  if (auto shape = stream_role_shape(role, spec, layer)) return *std::move(shape);
  switch (role) {
    case Role::embed:
    case Role::unembed:
      return {{vocab, d_model}, fmt::format("vocab_size {}, {}", vocab, model)};
    case Role::pos_embed:
      return {{spec.n_ctx + spec.position_offset, d_model},
              fmt::format("positions {}, {}", spec.n_ctx + spec.position_offset, model)};
    case Role::type_embed:
      return {{spec.n_types, d_model}, fmt::format("type_vocab_size {}, {}", spec.n_types, model)};
    case Role::per_layer_embed:
      return {{vocab, spec.n_layers * P}, words.per_layer()};
    case Role::per_layer_proj:
      return {{spec.n_layers * P, d_model}, words.per_layer() + ", " + model};
    case Role::per_layer_norm:
      return {{P}, words.per_layer()};
    case Role::per_layer_gate:
      return {{P, d_model}, words.per_layer() + ", " + model};
    case Role::per_layer_out:
      return {{d_model, P}, model + ", " + words.per_layer()};
    case Role::layer_scale:
      return {{1}, "a number a layer"};
    case Role::o_down:
      return {{std::int64_t{spec.o_groups} * spec.o_rank, z_width / std::max(spec.o_groups, 1)},
              fmt::format("{} groups of rank {}, {}", spec.o_groups, spec.o_rank, q)};
    case Role::route_table:
      return {{vocab, moe.n_used}, fmt::format("vocab_size {}, {} experts", vocab, moe.n_used)};
    case Role::q:
      if (is_latent) return latent_shape(role, spec);
      if (in_block && spec.mixer(layer) == Mixer::shared)
        return {{q_width, spec.latent.q_rank},
                fmt::format("{}, q_lora_rank {}", q, spec.latent.q_rank)};
      return {{q_width, d_model}, q + ", " + model};
    case Role::k:
      if (is_latent) return latent_shape(role, spec);
      return {{std::int64_t{G} * d, d_model}, words.kv(G) + ", " + model};
    case Role::v:
      if (is_latent) return latent_shape(role, spec);
      return {{std::int64_t{G} * d_v, d_model}, words.kv(G) + ", " + model};
    case Role::o:
      if (spec.mixer(layer) == Mixer::delta)
        return {{d_model, spec.delta.n_value_heads * spec.delta.value_dim}, model};
      if (spec.o_rank > 0)
        return {{d_model, std::int64_t{spec.o_groups} * spec.o_rank},
                fmt::format("{}, {} groups of rank {}", model, spec.o_groups, spec.o_rank)};
      return {{d_model, z_width}, model + ", " + q};
    case Role::q_bias:
      return {{q_width}, q};
    case Role::k_bias:
      return {{std::int64_t{G} * d}, words.kv(G)};
    case Role::v_bias:
      return {{std::int64_t{G} * d_v}, words.kv(G)};
    case Role::q_norm:
      if (spec.qk_norm == QkNorm::whole) return {{q_width}, q};
      return {{d}, fmt::format("head_dim {}", d)};
    case Role::k_norm:
      if (spec.qk_norm == QkNorm::whole) return {{spec.kv_width()}, words.kv(G)};
      return {{d}, fmt::format("head_dim {}", d)};
    case Role::attn_gate:
      if (is_latent) return latent_shape(role, spec);
      return {{z_width, d_model}, q + ", " + model};
    case Role::sink:
      return {{H}, fmt::format("num_attention_heads {}", H)};
    case Role::sink_proj:
      return {{H, d_model}, fmt::format("num_attention_heads {}, {}", H, model)};
    case Role::r:
    case Role::profiles:
    case Role::q_scale:
    case Role::r_scale:
    case Role::k_conv:
    case Role::v_conv:
    case Role::k_taps:
    case Role::v_taps:
    case Role::k_taps_proj:
    case Role::v_taps_proj:
    case Role::attn_conv:
    case Role::mlp_conv:
      return relative_shape(role, spec, layer);
    case Role::depth_attn_query:
      if (spec.n_inputs(layer) == 1) return {{d_model}, model};
      return {{spec.n_inputs(layer), d_model}, "queries for q, k and v, " + model};
    case Role::q_a:
    case Role::q_a_norm:  // also of shared mixers
    case Role::kv_a:
    case Role::kv_a_norm:
      return latent_shape(role, spec);
    case Role::index_q:
      return {{std::int64_t{1} * spec.index.n_heads * spec.index.head_dim,
               spec.latent.q_rank > 0 ? spec.latent.q_rank : d_model},
              words.index()};
    case Role::index_k:
      return {{spec.index.head_dim, d_model}, words.index()};
    case Role::index_weights:
      return {{spec.index.n_heads, d_model}, words.index()};
    case Role::index_q_norm:
    case Role::index_k_norm:
    case Role::index_k_norm_bias:
      return {{spec.index.head_dim}, words.index()};
    case Role::delta_q:
    case Role::delta_k:
    case Role::delta_v:
    case Role::delta_gate:
    case Role::delta_gate_up:
    case Role::delta_decay_up:
    case Role::delta_beta:
    case Role::delta_decay:
    case Role::delta_conv:
    case Role::delta_log_rate:
    case Role::delta_dt_bias:
    case Role::delta_norm:
      return delta_shape(role, spec);
    case Role::ln1_gate_down:
    case Role::ln2_gate_down:
      return {{spec.norm_gate_rank, d_model},
              fmt::format("rank {}, {}", spec.norm_gate_rank, model)};
    case Role::ln1_gate_up:
    case Role::ln2_gate_up:
      return {{d_model, spec.norm_gate_rank},
              fmt::format("{}, rank {}", model, spec.norm_gate_rank)};
    case Role::gate:
    case Role::up:
      return {{d_mlp, d_model}, mlp + ", " + model};
    case Role::down:
      return {{d_model, d_mlp}, model + ", " + mlp};
    case Role::gate_bias:
    case Role::up_bias:
      return {{d_mlp}, mlp};
    case Role::router:
      return {{E, d_model}, words.experts() + ", " + model};
    case Role::router_bias:
    case Role::choice_bias:
    case Role::expert_scale:
      return {{E}, words.experts()};
    case Role::expert_gate:
    case Role::expert_up:
      return {{E * I, d_model}, words.experts() + ", " + model};
    case Role::expert_down:
      return {{E * d_model, I}, words.experts() + ", " + model};
    case Role::expert_gate_bias:
    case Role::expert_up_bias:
      return {{E, I}, words.experts()};
    case Role::expert_down_bias:
      return {{E, d_model}, words.experts() + ", " + model};
    case Role::shared_gate:
    case Role::shared_up:
      return {{moe.d_shared, d_model}, fmt::format("shared width {}, {}", moe.d_shared, model)};
    case Role::shared_down:
      return {{d_model, moe.d_shared}, fmt::format("{}, shared width {}", model, moe.d_shared)};
    case Role::shared_router:
      return {{1, d_model}, model};
    case Role::rope_divisors:
      return {{spec.rope.rotary_dim / 2}, fmt::format("head_dim {} / 2", spec.head_dim)};
    default:  // norms and biases of the stream's width
      return {{d_model}, model};
  }
}

}  // namespace sinkscope
