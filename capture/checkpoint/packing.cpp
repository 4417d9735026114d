// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/packing.h"

#include <algorithm>
#include <iterator>

#include "capture/checkpoint/hf_names.h"

namespace sinkscope {
namespace {

// In the order of the enum.
constexpr const char* kPackings[] = {"own",
                                     "reshaped",
                                     "transposed",
                                     "qkv_rows",
                                     "qkv_columns",
                                     "qkv_by_head",
                                     "gate_up_rows",
                                     "query_gate_by_head",
                                     "query_gate_by_group",
                                     "key_value_by_head",
                                     "delta_rows",
                                     "delta_by_head",
                                     "delta_pairs_by_head",
                                     "expert_each",
                                     "qkv_each",
                                     "experts_gate_up",
                                     "experts_alternate",
                                     "experts_alternate_columns",
                                     "experts_transposed",
                                     "index_rows",
                                     "shards",
                                     "rotary_pairs",
                                     "minus_exp",
                                     "head_stack",
                                     "head_stack_transposed"};
static_assert(std::size(kPackings) == static_cast<std::size_t>(Packing::head_stack_transposed) + 1);

bool is_one_of(Role role, std::initializer_list<Role> roles) {
  return std::find(roles.begin(), roles.end(), role) != roles.end();
}

bool is_expert_matrix(Role role) {
  return is_one_of(role, {Role::expert_gate, Role::expert_up, Role::expert_down});
}

// Heads of one width, as many in every block: what the shared q, k, v layouts assume.
bool has_even_heads(const ArchSpec& spec) {
  return spec.layer_kv_heads.empty() && spec.layer_head_dims.empty() &&
         spec.d_value() == spec.head_dim && spec.latent.kv_rank == 0;
}

}  // namespace

const char* to_string(Packing packing) { return kPackings[static_cast<std::size_t>(packing)]; }

std::optional<Packing> packing_named(const std::string& name) {
  const auto* found = std::find(std::begin(kPackings), std::end(kPackings), name);
  if (found == std::end(kPackings)) return std::nullopt;
  return static_cast<Packing>(found - std::begin(kPackings));
}

bool can_pack(Packing packing, Role role, const ArchSpec& spec) {
  const bool is_matrix = expected_shape(role, spec).shape.size() == 2;
  const bool is_qkv = is_one_of(role, {Role::q, Role::k, Role::v});
  const bool is_expert_bias = is_one_of(role, {Role::expert_gate_bias, Role::expert_up_bias});
  switch (packing) {
    case Packing::own:
      return true;
    case Packing::reshaped:
      return !is_expert_matrix(role);
    case Packing::transposed:
      return is_matrix && !is_expert_matrix(role) && is_layer_role(role);
    case Packing::qkv_columns:
      return is_qkv && has_even_heads(spec);
    case Packing::qkv_rows:
    case Packing::qkv_by_head:
      return (is_qkv || is_one_of(role, {Role::q_bias, Role::k_bias, Role::v_bias})) &&
             has_even_heads(spec) &&
             (packing == Packing::qkv_rows || spec.n_kv_heads == spec.n_heads);
    case Packing::gate_up_rows:
      return is_one_of(role, {Role::gate, Role::up, Role::shared_gate, Role::shared_up});
    case Packing::query_gate_by_head:
    case Packing::query_gate_by_group:
      return is_one_of(role, {Role::q, Role::attn_gate, Role::q_bias, Role::attn_gate_bias}) &&
             spec.gate_dim() > 0 && spec.layer_head_dims.empty() &&
             (packing == Packing::query_gate_by_head ||
              (spec.latent.kv_rank == 0 && spec.layer_kv_heads.empty()));
    case Packing::key_value_by_head:
      return is_one_of(role, {Role::k, Role::v}) && spec.latent.kv_rank > 0;
    case Packing::delta_rows:
      return is_one_of(role, {Role::delta_q, Role::delta_k, Role::delta_v}) &&
             spec.delta.n_key_heads > 0;
    case Packing::delta_by_head:
      return is_one_of(role, {Role::delta_q, Role::delta_k, Role::delta_v, Role::delta_gate}) &&
             spec.delta.n_key_heads > 0 && spec.delta.narrow == 0;
    case Packing::delta_pairs_by_head:
      return is_one_of(role, {Role::delta_beta, Role::delta_decay}) && spec.delta.n_key_heads > 0 &&
             spec.delta.narrow == 0;
    case Packing::expert_each:
      return is_expert_matrix(role) && spec.moe.n_experts > 0;
    case Packing::qkv_each:
      return role == Role::delta_conv && spec.delta.key_dim == spec.delta.value_dim &&
             spec.delta.n_key_heads == spec.delta.n_value_heads;
    case Packing::experts_gate_up:
    case Packing::experts_alternate_columns:
      return is_one_of(role, {Role::expert_gate, Role::expert_up}) && spec.moe.n_experts > 0;
    case Packing::experts_alternate:
      return (is_one_of(role, {Role::expert_gate, Role::expert_up}) || is_expert_bias) &&
             spec.moe.n_experts > 0;
    case Packing::experts_transposed:
      return is_expert_matrix(role) && spec.moe.n_experts > 0;
    case Packing::index_rows:
      return is_one_of(role, {Role::index_q, Role::index_k}) && spec.index.n_heads > 0;
    case Packing::shards:
      return role == Role::ngram_table;
    case Packing::rotary_pairs:
      return is_one_of(role, {Role::q, Role::k, Role::q_bias, Role::k_bias}) &&
             has_even_heads(spec);
    case Packing::minus_exp:
      return role == Role::delta_log_rate;
    case Packing::head_stack:
    case Packing::head_stack_transposed:
      return is_one_of(role, {Role::k, Role::v}) && spec.latent.kv_rank > 0;
  }
  return false;
}

}  // namespace sinkscope
