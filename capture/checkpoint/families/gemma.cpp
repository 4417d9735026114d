// SPDX-License-Identifier: GPL-3.0-or-later
// Gemma 2, 3 and 4 (text): norms on both sides of a sub-layer, scaled embeddings, soft-caps or q/k
// norms, windowed layers with rotary positions of their own; in Gemma 4 also inputs of every layer,
// layers that share keys and values, and experts beside the dense MLP.
#include <cmath>
#include <nlohmann/json.hpp>

#include "capture/checkpoint/families/families.h"

namespace sinkscope {
namespace {

constexpr TensorName kGemma[] = {
    {Role::ln1_post, "post_attention_layernorm.weight"},
    {Role::ln2, "pre_feedforward_layernorm.weight"},
    {Role::ln2_post, "post_feedforward_layernorm.weight"},
};

constexpr TensorName kGemma4[] = {
    {Role::per_layer_embed, "embed_tokens_per_layer.weight"},
    {Role::per_layer_proj, "per_layer_model_projection.weight"},
    {Role::per_layer_norm, "per_layer_projection_norm.weight"},
    {Role::ln1_post, "post_attention_layernorm.weight"},
    {Role::ln2, "pre_feedforward_layernorm.weight"},
    {Role::ln2_post, "post_feedforward_layernorm.weight"},
    {Role::router, "router.proj.weight"},
    {Role::router_scale, "router.scale"},
    {Role::expert_scale, "router.per_expert_scale"},
    {Role::expert_gate, "experts.gate_up_proj", Packing::experts_gate_up},
    {Role::expert_up, "experts.gate_up_proj", Packing::experts_gate_up},
    {Role::expert_down, "experts.down_proj"},
    {Role::ln2_experts, "pre_feedforward_layernorm_2.weight"},
    {Role::ln2_post_dense, "post_feedforward_layernorm_1.weight"},
    {Role::ln2_post_experts, "post_feedforward_layernorm_2.weight"},
    {Role::per_layer_gate, "per_layer_input_gate.weight"},
    {Role::per_layer_out, "per_layer_projection.weight"},
    {Role::per_layer_post, "post_per_layer_input_norm.weight"},
    {Role::layer_scale, "layer_scalar"},
};

void read_gemma(const JsonKeys& keys, HfConfig& out) {
  ArchSpec& spec = out.spec;
  spec.has_ln1_post = spec.has_ln2_post = true;
  spec.embed_scale = std::sqrt(static_cast<double>(spec.d_model));
  spec.attention_scale = 1.0 / std::sqrt(keys.number("query_pre_attn_scalar").value_or(256));
  spec.score_cap = keys.number("attn_logit_softcapping").value_or(0);
  spec.logit_cap = keys.number("final_logit_softcapping").value_or(0);
  if (spec.score_cap < 0 || spec.logit_cap < 0)
    out.obstacles.push_back("a soft cap is negative; 0 or null means none");
  read_attention_bias(keys, out);
  if (keys.boolean("use_bidirectional_attention").value_or(false))
    out.obstacles.push_back("use_bidirectional_attention is not supported");
}

void read_gemma2(const JsonKeys& keys, HfConfig& out) {
  read_gemma(keys, out);
  if (!keys.has("attn_logit_softcapping") && !keys.is_null("attn_logit_softcapping"))
    out.spec.score_cap = 50;
  if (!keys.has("final_logit_softcapping") && !keys.is_null("final_logit_softcapping"))
    out.spec.logit_cap = 30;
  window_layers(keys, 4096, out, [](int layer) { return layer % 2 == 0; });
}

void read_gemma3(const JsonKeys& keys, HfConfig& out) {
  read_gemma(keys, out);
  ArchSpec& spec = out.spec;
  spec.qk_norm = QkNorm::per_head;
  std::int64_t period = keys.whole("_sliding_window_pattern", 1, 1 << 20).value_or(6);
  period = keys.whole("sliding_window_pattern", 1, 1 << 20).value_or(period);
  window_layers(keys, 4096, out, [period](int layer) { return (layer + 1) % period != 0; });
  if (!spec.layer_ropes.empty()) return;  // the new spelling has one kind a layer type
  RopeSpec local;
  local.theta = keys.number("rope_local_base_freq").value_or(10000);
  for (const int window : spec.window) spec.layer_ropes.push_back(window > 0 ? local : spec.rope);
}

// Full layers have heads of another width, and perhaps another number of them.
void read_full_layers(const JsonKeys& keys, HfConfig& out) {
  ArchSpec& spec = out.spec;
  const auto n = static_cast<std::size_t>(spec.n_layers);
  const nlohmann::json* by_layer = keys.object("per_layer_config");
  const bool shares = keys.boolean("attention_k_eq_v").value_or(false);
  const auto width = keys.whole("global_head_dim", 1, 1 << 16);
  const auto heads = keys.whole("num_global_key_value_heads", 1, 1 << 14);
  spec.layer_head_dims.assign(n, spec.head_dim);
  spec.layer_kv_heads.assign(n, spec.n_kv_heads);
  if (shares) spec.keys_as_values.assign(n, false);
  for (std::size_t layer = 0; layer < n; ++layer) {
    if (spec.window[layer] > 0) continue;
    int &dim = spec.layer_head_dims[layer], &kv_heads = spec.layer_kv_heads[layer];
    if (by_layer == nullptr) dim = static_cast<int>(width.value_or(512));
    if (by_layer == nullptr && shares) kv_heads = static_cast<int>(heads.value_or(kv_heads));
    if (shares) spec.keys_as_values[layer] = true;
  }
  for (std::size_t layer = 0; by_layer != nullptr && layer < n; ++layer) {
    const auto own = by_layer->find(std::to_string(layer));
    if (own == by_layer->end() || !own->is_object()) continue;
    const JsonKeys its(*own, "config.json", "per_layer_config.");
    int &dim = spec.layer_head_dims[layer], &kv_heads = spec.layer_kv_heads[layer];
    dim = static_cast<int>(its.whole("head_dim", 1, 1 << 16).value_or(dim));
    kv_heads = static_cast<int>(its.whole("num_key_value_heads", 1, 1 << 14).value_or(kv_heads));
  }
}

// The last layers have no keys and values of their own: they use those of the
// last layer of their kind that has.
void read_shared_layers(const JsonKeys& keys, HfConfig& out) {
  ArchSpec& spec = out.spec;
  const int n_shared =
      static_cast<int>(keys.whole("num_kv_shared_layers", 0, spec.n_layers).value_or(0));
  if (n_shared == 0) return;
  const int first = spec.n_layers - n_shared;
  const bool is_wide = keys.boolean("use_double_wide_mlp").value_or(false);
  if (is_wide) spec.layer_mlps.assign(static_cast<std::size_t>(spec.n_layers), spec.d_mlp);
  int last[] = {-1, -1};  // with a window, without
  for (int layer = 0; layer < spec.n_layers; ++layer) {
    const auto at = static_cast<std::size_t>(layer);
    int& source = last[spec.window[at] > 0 ? 0 : 1];
    if (layer < first) source = layer;
    if (source < 0) {
      out.obstacles.push_back("num_kv_shared_layers leaves a kind of layer without keys");
      return;
    }
    spec.kv_source.push_back(source);
    if (is_wide && layer >= first) spec.layer_mlps[at] = 2 * spec.d_mlp;
  }
}

void read_gemma4(const JsonKeys& keys, HfConfig& out) {
  ArchSpec& spec = out.spec;
  spec.has_ln1_post = spec.has_ln2_post = true;
  spec.embed_scale = std::sqrt(static_cast<double>(spec.d_model));
  spec.attention_scale = 1;
  spec.qk_norm = QkNorm::per_head;
  spec.value_norm = spec.layer_scale = true;
  spec.logit_cap = keys.number("final_logit_softcapping").value_or(0);
  if (spec.logit_cap < 0) out.obstacles.push_back("a soft cap is negative; null means none");
  if (spec.head_dim == 0) spec.head_dim = 256;
  if (spec.n_kv_heads == 0) spec.n_kv_heads = spec.n_heads;
  window_layers(keys, 512, out,
                [&spec](int layer) { return (layer + 1) % 6 != 0 && layer + 1 != spec.n_layers; });
  read_full_layers(keys, out);
  read_shared_layers(keys, out);
  spec.d_per_layer =
      static_cast<int>(keys.whole("hidden_size_per_layer_input", 0, 1 << 16).value_or(256));
  if (keys.boolean("attention_bias").value_or(false))
    out.obstacles.push_back("attention_bias is not supported in this family");
  if (keys.says("use_bidirectional_attention", true) ||
      keys.says("use_bidirectional_attention", "all"))
    out.obstacles.push_back("use_bidirectional_attention is not supported");
  if (!keys.boolean("enable_moe_block").value_or(false)) return;
  read_experts(keys, {"num_experts"}, {"top_k_experts"}, "moe_intermediate_size", out);
  spec.moe.beside_dense = true;
}

constexpr Family kFamilies[] = {
    {.model_type = "gemma2",
     .vocab_size = 256000,
     .d_mlp = 9216,
     .n_ctx = 8192,
     .bos_id = 2,
     .eos_id = 1,
     .tied = true,
     .activation = "gelu_pytorch_tanh",
     .names = kGemma,
     .read = read_gemma2},
    {.model_type = "gemma3_text",
     .vocab_size = 262208,
     .d_mlp = 9216,
     .n_ctx = 131072,
     .bos_id = 2,
     .eos_id = 1,
     .tied = true,
     .rope_theta = 1000000,
     .activation = "gelu_pytorch_tanh",
     .names = kGemma,
     .read = read_gemma3},
    {.model_type = "gemma4_text",
     .vocab_size = 262144,
     .d_mlp = 6144,
     .n_ctx = 131072,
     .bos_id = 2,
     .eos_id = 1,
     .tied = true,
     .activation = "gelu_pytorch_tanh",
     .names = kGemma4,
     .read = read_gemma4},
};

}  // namespace

std::span<const Family> gemma_families() { return kFamilies; }

}  // namespace sinkscope
