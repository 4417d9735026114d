// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/role.h"

#include <iterator>

namespace sinkscope {
namespace {

// In the order of the enum.
constexpr const char* kNames[] = {
    "embed",
    "unembed",
    "pos_embed",
    "type_embed",
    "embed_norm",
    "embed_norm_bias",
    "ln_final",
    "ln_final_bias",
    "ln_final_pre",
    "per_layer_embed",
    "per_layer_proj",
    "per_layer_norm",
    "depth_final_query",
    "mix_final_norm",
    "mix_final_down",
    "mix_final_up",
    "mix_final_factors",
    "mix_final_base",
    "mix_final_scale",
    "rope_divisors",
    "mix1_norm",
    "mix1_down",
    "mix1_up",
    "mix1_inject",
    "mix1_factors",
    "mix1_base",
    "mix1_scale",
    "mix2_norm",
    "mix2_down",
    "mix2_up",
    "mix2_inject",
    "mix2_factors",
    "mix2_base",
    "mix2_scale",
    "ngram_multipliers",
    "ngram_sizes",
    "ngram_offsets",
    "ngram_table",
    "ngram_key",
    "ngram_value",
    "ngram_key_norm",
    "ngram_query_norm",
    "ngram_conv_norm",
    "ngram_conv",
    "ln1",
    "ln1_bias",
    "ln1_k",
    "ln1_v",
    "ln1_pre",
    "ln1_gate_down",
    "ln1_gate_up",
    "q",
    "k",
    "v",
    "o",
    "q_bias",
    "k_bias",
    "v_bias",
    "o_bias",
    "q_norm",
    "k_norm",
    "attn_gate",
    "attn_gate_bias",
    "sink",
    "sink_proj",
    "r",
    "profiles",
    "q_scale",
    "r_scale",
    "k_conv",
    "v_conv",
    "k_taps",
    "k_taps_proj",
    "v_taps",
    "v_taps_proj",
    "attn_conv",
    "mlp_conv",
    "depth_attn_query",
    "depth_mlp_query",
    "q_a",
    "q_a_norm",
    "kv_a",
    "kv_a_norm",
    "index_q",
    "index_k",
    "index_weights",
    "index_k_norm",
    "index_k_norm_bias",
    "index_q_norm",
    "compress_kv",
    "compress_gate",
    "compress_place",
    "compress_norm",
    "index_kv",
    "index_gate",
    "index_place",
    "index_kv_norm",
    "o_down",
    "delta_q",
    "delta_k",
    "delta_v",
    "delta_gate",
    "delta_beta",
    "delta_decay",
    "delta_gate_up",
    "delta_decay_up",
    "delta_conv",
    "delta_log_rate",
    "delta_dt_bias",
    "delta_norm",
    "ln1_post",
    "ln1_post_bias",
    "ln2",
    "ln2_bias",
    "ln2_pre",
    "ln2_gate_down",
    "ln2_gate_up",
    "gate",
    "up",
    "down",
    "gate_bias",
    "up_bias",
    "down_bias",
    "router",
    "router_bias",
    "choice_bias",
    "route_table",
    "expert_gate",
    "expert_up",
    "expert_down",
    "expert_gate_bias",
    "expert_up_bias",
    "expert_down_bias",
    "shared_gate",
    "shared_up",
    "shared_down",
    "shared_router",
    "router_scale",
    "expert_scale",
    "ln2_experts",
    "ln2_post_dense",
    "ln2_post_experts",
    "ln2_post",
    "ln2_post_bias",
    "per_layer_gate",
    "per_layer_out",
    "per_layer_post",
    "layer_scale",
};
static_assert(std::size(kNames) == static_cast<std::size_t>(Role::last) + 1);

}  // namespace

const char* to_string(Role role) { return kNames[static_cast<std::size_t>(role)]; }

Role bias_of(Role norm) { return static_cast<Role>(static_cast<int>(norm) + 1); }

bool is_norm_gain(Role role) {
  switch (role) {
    case Role::embed_norm:
    case Role::ln_final:
    case Role::ln1:
    case Role::ln1_k:
    case Role::ln1_v:
    case Role::q_norm:
    case Role::k_norm:
    case Role::q_a_norm:
    case Role::kv_a_norm:
    case Role::delta_norm:
    case Role::index_k_norm:
    case Role::index_q_norm:
    case Role::index_kv_norm:
    case Role::compress_norm:
    case Role::mix_final_norm:
    case Role::mix1_norm:
    case Role::mix2_norm:
    case Role::ngram_key_norm:
    case Role::ngram_query_norm:
    case Role::ngram_conv_norm:
    case Role::ln1_post:
    case Role::ln2:
    case Role::ln2_post:
    case Role::per_layer_norm:
    case Role::per_layer_post:
    case Role::ln2_experts:
    case Role::ln2_post_dense:
    case Role::ln2_post_experts:
      return true;
    default:
      return false;
  }
}

}  // namespace sinkscope
