// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/hf_names.h"

#include <fmt/format.h>

#include <algorithm>

namespace sinkscope {
namespace {

const char* suffix_of(Role role) {
  switch (role) {
    case Role::embed:
      return "embed_tokens.weight";
    case Role::unembed:
      return "lm_head.weight";
    case Role::ln_final:
      return "norm.weight";
    case Role::rope_divisors:
    case Role::ln1_post:
    case Role::ln2_post:
      return "";  // not in this family's folders
    case Role::ln1:
      return "input_layernorm.weight";
    case Role::q:
      return "self_attn.q_proj.weight";
    case Role::k:
      return "self_attn.k_proj.weight";
    case Role::v:
      return "self_attn.v_proj.weight";
    case Role::o:
      return "self_attn.o_proj.weight";
    case Role::q_bias:
      return "self_attn.q_proj.bias";
    case Role::k_bias:
      return "self_attn.k_proj.bias";
    case Role::v_bias:
      return "self_attn.v_proj.bias";
    case Role::o_bias:
      return "self_attn.o_proj.bias";
    case Role::q_norm:
      return "self_attn.q_norm.weight";
    case Role::k_norm:
      return "self_attn.k_norm.weight";
    case Role::ln2:
      return "post_attention_layernorm.weight";
    case Role::gate:
      return "mlp.gate_proj.weight";
    case Role::up:
      return "mlp.up_proj.weight";
    case Role::down:
      return "mlp.down_proj.weight";
    case Role::gate_bias:
      return "mlp.gate_proj.bias";
    case Role::up_bias:
      return "mlp.up_proj.bias";
    case Role::down_bias:
      return "mlp.down_proj.bias";
    case Role::ln1_pre:
      return "input_layernorm.pre_affine";
    case Role::ln2_pre:
      return "post_attention_layernorm.pre_affine";
    case Role::ln_final_pre:
      return "norm.pre_affine";
  }
  return "";
}

}  // namespace

std::string hf_name(Role role, int layer) {
  return layer == kNoLayer ? suffix_of(role) : fmt::format("layers.{}.{}", layer, suffix_of(role));
}

std::vector<Role> layer_roles(const ArchSpec& spec) {
  std::vector<Role> roles = {Role::ln1, Role::q, Role::k, Role::v, Role::o};
  if (spec.qkv_bias) roles.insert(roles.end(), {Role::q_bias, Role::k_bias, Role::v_bias});
  if (spec.o_bias) roles.push_back(Role::o_bias);
  if (spec.qk_norm == QkNorm::per_head) roles.insert(roles.end(), {Role::q_norm, Role::k_norm});
  roles.insert(roles.end(), {Role::ln2, Role::gate, Role::up, Role::down});
  if (spec.pre_affine) roles.insert(roles.end(), {Role::ln1_pre, Role::ln2_pre});
  if (spec.mlp_bias) roles.insert(roles.end(), {Role::gate_bias, Role::up_bias, Role::down_bias});
  return roles;
}

ExpectedShape expected_shape(Role role, const ArchSpec& spec) {
  const std::int64_t d_model = spec.d_model, d_mlp = spec.d_mlp, vocab = spec.vocab_size;
  const std::int64_t q_width = spec.q_width(), kv_width = spec.kv_width();
  const std::string model = fmt::format("hidden_size {}", d_model);
  const std::string mlp = fmt::format("intermediate_size {}", d_mlp);
  const std::string q =
      fmt::format("num_attention_heads {} x head_dim {}", spec.n_heads, spec.head_dim);
  const std::string kv =
      fmt::format("num_key_value_heads {} x head_dim {}", spec.n_kv_heads, spec.head_dim);
  switch (role) {
    case Role::embed:
    case Role::unembed:
      return {{vocab, d_model}, fmt::format("vocab_size {}, {}", vocab, model)};
    case Role::ln_final:
    case Role::ln1:
    case Role::ln2:
    case Role::ln1_post:
    case Role::ln2_post:
    case Role::ln1_pre:
    case Role::ln2_pre:
    case Role::ln_final_pre:
    case Role::o_bias:
    case Role::down_bias:
      return {{d_model}, model};
    case Role::q:
      return {{q_width, d_model}, q + ", " + model};
    case Role::k:
    case Role::v:
      return {{kv_width, d_model}, kv + ", " + model};
    case Role::o:
      return {{d_model, q_width}, model + ", " + q};
    case Role::q_bias:
      return {{q_width}, q};
    case Role::k_bias:
    case Role::v_bias:
      return {{kv_width}, kv};
    case Role::q_norm:
    case Role::k_norm:
      return {{spec.head_dim}, fmt::format("head_dim {}", spec.head_dim)};
    case Role::gate:
    case Role::up:
      return {{d_mlp, d_model}, mlp + ", " + model};
    case Role::down:
      return {{d_model, d_mlp}, model + ", " + mlp};
    case Role::gate_bias:
    case Role::up_bias:
      return {{d_mlp}, mlp};
    case Role::rope_divisors:
      return {{spec.rope.rotary_dim / 2}, fmt::format("head_dim {} / 2", spec.head_dim)};
  }
  return {};
}

std::optional<LayerName> split_layer_name(std::string_view name) {
  constexpr std::string_view kWord = "layers.";
  std::size_t at = name.find(kWord);
  while (at != std::string_view::npos && at != 0 && name[at - 1] != '.')
    at = name.find(kWord, at + 1);
  if (at == std::string_view::npos) return std::nullopt;
  LayerName split;
  split.prefix = name.substr(0, at);
  std::size_t i = at + kWord.size();
  const std::size_t digits = i;
  for (; i < name.size() && i < digits + 6 && name[i] >= '0' && name[i] <= '9'; ++i)
    split.layer = split.layer * 10 + (name[i] - '0');
  if (i == digits || i >= name.size() || name[i] != '.') return std::nullopt;
  split.rest = name.substr(i + 1);
  return split;
}

bool is_ignored_name(std::string_view name) {
  for (const std::string_view suffix : {".rotary_emb.inv_freq", ".attn.bias", ".attn.masked_bias",
                                        ".attention.bias", ".attention.masked_bias"}) {
    if (name.ends_with(suffix)) return true;
  }
  return name.starts_with("mtp.") || name.find(".mtp.") != std::string_view::npos ||
         name == "position_ids" || name.ends_with(".position_ids");
}

bool is_activation_scale(std::string_view name) {
  for (const std::string_view suffix :
       {"input_scale", "output_scale", ".k_scale", ".v_scale", ".q_scale", ".activation_scale"}) {
    if (name.ends_with(suffix)) return true;
  }
  return false;
}

}  // namespace sinkscope
