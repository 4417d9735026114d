// SPDX-License-Identifier: GPL-3.0-or-later
#include <nlohmann/json.hpp>

#include "app/cli/model_card.h"

namespace sinkscope {
namespace {

using Json = nlohmann::ordered_json;

Json optional_json(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json rope_json(const RopeSpec& rope) {
  return Json{{"theta", rope.theta},
              {"rotary_dim", rope.rotary_dim},
              {"scaling", to_string(rope.scaling)},
              {"factor", rope.factor},
              {"low_freq_factor", rope.low_freq_factor},
              {"high_freq_factor", rope.high_freq_factor},
              {"original_context", rope.original_context},
              {"beta_fast", rope.beta_fast},
              {"beta_slow", rope.beta_slow},
              {"truncate", rope.truncate},
              {"attention_factor", optional_json(rope.attention_factor)},
              {"mscale", optional_json(rope.mscale)},
              {"mscale_all_dim", optional_json(rope.mscale_all_dim)},
              {"has_divisors", rope.has_divisors}};
}

Json spec_json(const ArchSpec& spec) {
  return Json{{"architecture", spec.architecture},
              {"name", spec.name},
              {"n_layers", spec.n_layers},
              {"n_heads", spec.n_heads},
              {"n_kv_heads", spec.n_kv_heads},
              {"head_dim", spec.head_dim},
              {"d_model", spec.d_model},
              {"d_mlp", spec.d_mlp},
              {"vocab_size", spec.vocab_size},
              {"n_ctx", spec.n_ctx},
              {"norm_kind", spec.norm_kind == NormKind::rms ? "rms" : "layer_norm"},
              {"norm_eps", spec.norm_eps},
              {"norm_offset", spec.norm_offset},
              {"qk_norm", spec.qk_norm == QkNorm::per_head ? "per_head" : "none"},
              {"qkv_bias", spec.qkv_bias},
              {"o_bias", spec.o_bias},
              {"mlp_bias", spec.mlp_bias},
              {"attention_scale", spec.attention_scale},
              {"rope", rope_json(spec.rope)},
              {"window", spec.window},
              {"has_head", spec.has_head},
              {"tied", spec.tied},
              {"bos_id", spec.bos_id},
              {"eos_id", spec.eos_id}};
}

Json tensor_json(const ModelFiles& model, Role role, int layer) {
  return model.has(role, layer) ? Json(model.tensor_name(role, layer)) : Json(nullptr);
}

Json roles_json(const ModelFiles& model) {
  Json roles = Json::object();
  for (const Role role : {Role::embed, Role::unembed, Role::ln_final, Role::rope_divisors})
    if (model.has(role, kNoLayer)) roles[to_string(role)] = tensor_json(model, role, kNoLayer);
  for (int index = static_cast<int>(Role::ln1); index <= static_cast<int>(Role::down_bias);
       ++index) {
    const Role role = static_cast<Role>(index);
    Json layers = Json::array();
    bool is_filled = false;
    for (int layer = 0; layer < model.spec().n_layers; ++layer) {
      layers.push_back(tensor_json(model, role, layer));
      is_filled = is_filled || model.has(role, layer);
    }
    if (is_filled) roles[to_string(role)] = layers;
  }
  return roles;
}

}  // namespace

nlohmann::ordered_json arch_json(const ModelFiles& model) {
  return Json{{"schema", "sinkscope.arch/1"},
              {"conventions",
               {{"roles", "tensor names; a list has one entry a block, null where it has none"},
                {"window", "keys a query sees, its own included; 0 = all before it"}}},
              {"spec", spec_json(model.spec())},
              {"roles", roles_json(model)}};
}

}  // namespace sinkscope
