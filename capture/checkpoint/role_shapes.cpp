// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>

#include <algorithm>

#include "capture/checkpoint/hf_names.h"
#include "capture/checkpoint/mixer_shapes.h"
#include "capture/checkpoint/stream_shapes.h"

namespace sinkscope {
namespace {

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

}  // namespace

ExpectedShape expected_shape(Role role, const ArchSpec& spec, int layer) {
  const bool in_block = is_layer_role(role);
  const int d = in_block ? spec.head_dim_of(layer) : spec.head_dim;
  const int d_v = in_block ? spec.d_value_of(layer) : spec.d_value();
  const std::int64_t d_model = spec.d_model, vocab = spec.vocab_size, P = spec.d_per_layer,
                     d_mlp = in_block ? spec.mlp_of(layer) : spec.d_mlp;
  const MoeSpec& moe = spec.moe;
  const std::int64_t E = moe.n_experts, I = moe.d_expert, H = spec.n_heads;
  const std::int64_t q_width = H * d, z_width = H * d_v,
                     gate_dim = in_block ? spec.gate_dim_of(layer) : spec.gate_dim();
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
      return {{H * gate_dim, d_model}, q + ", " + model};
    case Role::attn_gate_bias:
      return {{H * gate_dim}, q};
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
