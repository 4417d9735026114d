// SPDX-License-Identifier: GPL-3.0-or-later
// Llama, Mistral, Qwen2, Qwen3, SmolLM3, Ministral 3: the same block with switches.
#include "capture/checkpoint/families/families.h"

namespace sinkscope {
namespace {

constexpr TensorName kNames[] = {
    {Role::embed, "embed_tokens.weight"},
    {Role::unembed, "lm_head.weight"},
    {Role::ln_final, "norm.weight"},
    {Role::ln_final_pre, "norm.pre_affine"},
    {Role::ln1, "input_layernorm.weight"},
    {Role::ln1_pre, "input_layernorm.pre_affine"},
    {Role::q, "self_attn.q_proj.weight"},
    {Role::k, "self_attn.k_proj.weight"},
    {Role::v, "self_attn.v_proj.weight"},
    {Role::o, "self_attn.o_proj.weight"},
    {Role::q_bias, "self_attn.q_proj.bias"},
    {Role::k_bias, "self_attn.k_proj.bias"},
    {Role::v_bias, "self_attn.v_proj.bias"},
    {Role::o_bias, "self_attn.o_proj.bias"},
    {Role::q_norm, "self_attn.q_norm.weight"},
    {Role::k_norm, "self_attn.k_norm.weight"},
    {Role::ln2, "post_attention_layernorm.weight"},
    {Role::ln2_pre, "post_attention_layernorm.pre_affine"},
    {Role::gate, "mlp.gate_proj.weight"},
    {Role::up, "mlp.up_proj.weight"},
    {Role::down, "mlp.down_proj.weight"},
    {Role::gate_bias, "mlp.gate_proj.bias"},
    {Role::up_bias, "mlp.up_proj.bias"},
    {Role::down_bias, "mlp.down_proj.bias"},
    {Role::router, "mlp.gate.weight"},
    {Role::choice_bias, "mlp.gate.e_score_correction_bias"},
    {Role::expert_gate, "mlp.experts.{}.gate_proj.weight", Packing::expert_each},
    {Role::expert_gate, "mlp.experts.gate_up_proj", Packing::experts_gate_up},
    {Role::expert_up, "mlp.experts.{}.up_proj.weight", Packing::expert_each},
    {Role::expert_up, "mlp.experts.gate_up_proj", Packing::experts_gate_up},
    {Role::expert_down, "mlp.experts.{}.down_proj.weight", Packing::expert_each},
    {Role::expert_down, "mlp.experts.down_proj"},
};

void read_llama(const JsonKeys& keys, HfConfig& out) {
  read_attention_bias(keys, out);
  out.spec.mlp_bias = keys.boolean("mlp_bias").value_or(false);
}

constexpr int kDefaultWindow = 4096, kDefaultMaxWindowLayers = 28;

void read_mistral(const JsonKeys& keys, HfConfig& out) {
  window_layers(keys, kDefaultWindow, out, [](int) { return true; });
}

// Qwen windows the layers from max_window_layers on, if use_sliding_window.
void qwen_windows(const JsonKeys& keys, HfConfig& out) {
  if (!keys.boolean("use_sliding_window").value_or(false)) return;
  const std::int64_t first =
      keys.whole("max_window_layers", 0, 1 << 26).value_or(kDefaultMaxWindowLayers);
  window_layers(keys, kDefaultWindow, out, [first](int layer) { return layer >= first; });
}

void read_qwen2(const JsonKeys& keys, HfConfig& out) {
  out.spec.qkv_bias = true;
  qwen_windows(keys, out);
}

// Gated attention (2505.06708, qiuzh20/gated_attention): gates beside the queries, key head by key
// head.
constexpr TensorName kGated[] = {
    {Role::q, "self_attn.q_proj.weight", Packing::query_gate_by_group},
    {Role::q_bias, "self_attn.q_proj.bias", Packing::query_gate_by_group},
    {Role::attn_gate, "self_attn.q_proj.weight", Packing::query_gate_by_group},
    {Role::attn_gate_bias, "self_attn.q_proj.bias", Packing::query_gate_by_group},
};
constexpr Family kGatedFamily{.model_type = "qwen3", .names = kGated};

// As that code decides: heads before channels, its own keys for biases and q/k norms.
void read_output_gate(const JsonKeys& keys, HfConfig& out) {
  ArchSpec& spec = out.spec;
  const auto says = [&keys](const char* key) { return keys.boolean(key).value_or(false); };
  spec.attn_gate = says("headwise_attn_output_gate")      ? AttnGate::headwise
                   : says("elementwise_attn_output_gate") ? AttnGate::elementwise
                                                          : AttnGate::none;
  if (spec.attn_gate != AttnGate::none) out.family = &kGatedFamily;
  if (!keys.boolean("use_qk_norm").value_or(true)) spec.qk_norm = QkNorm::none;
  spec.qkv_bias = spec.o_bias = keys.boolean("qkv_bias").value_or(spec.qkv_bias);
}

void read_qwen3(const JsonKeys& keys, HfConfig& out) {
  out.spec.qk_norm = QkNorm::per_head;
  read_attention_bias(keys, out);
  read_output_gate(keys, out);
  qwen_windows(keys, out);
}

// no_rope_layers holds 1 where positions are rotated; else every 4th layer goes without.
void read_smollm3(const JsonKeys& keys, HfConfig& out) {
  read_llama(keys, out);
  ArchSpec& spec = out.spec;
  const auto listed = keys.numbers("no_rope_layers");
  const int interval =
      static_cast<int>(keys.whole("no_rope_layer_interval", 1, 1 << 20).value_or(4));
  if (listed && static_cast<int>(listed->size()) != spec.n_layers) {
    out.obstacles.push_back("no_rope_layers does not name every layer");
    return;
  }
  spec.layer_ropes.assign(static_cast<std::size_t>(spec.n_layers), spec.rope);
  for (std::size_t layer = 0; layer < spec.layer_ropes.size(); ++layer) {
    const bool rotates =
        listed ? (*listed)[layer] != 0 : (static_cast<int>(layer) + 1) % interval != 0;
    if (!rotates) spec.layer_ropes[layer].partial = 0;
  }
  if (keys.boolean("use_sliding_window").value_or(false))
    window_layers(keys, 0, out, [&](int layer) {
      return spec.layer_ropes[static_cast<std::size_t>(layer)].partial > 0;
    });
}

void read_ministral3(const JsonKeys& keys, HfConfig& out) {
  window_layers(keys, 0, out, [](int) { return true; });
  for (const char* name : {"rope_parameters", "rope_scaling"}) {
    if (const nlohmann::json* rope = keys.object(name)) {
      const JsonKeys inner(*rope, "config.json", std::string(name) + ".");
      out.spec.query_growth = inner.number("llama_4_scaling_beta").value_or(0);
      out.spec.query_growth_context = out.spec.rope.original_context;
    }
  }
  if (out.spec.query_growth != 0 && !(out.spec.query_growth_context > 0))
    out.obstacles.push_back("llama_4_scaling_beta without original_max_position_embeddings");
}

constexpr Family kFamilies[] = {
    {.model_type = "llama",
     .vocab_size = 32000,
     .d_mlp = 11008,
     .n_ctx = 2048,
     .bos_id = 1,
     .eos_id = 2,
     .d_model = 4096,
     .n_layers = 32,
     .n_heads = 32,
     .read = read_llama},
    {.model_type = "mistral",
     .vocab_size = 32000,
     .d_mlp = 14336,
     .n_ctx = 131072,
     .bos_id = 1,
     .eos_id = 2,
     .d_model = 4096,
     .n_layers = 32,
     .n_heads = 32,
     .read = read_mistral},
    {.model_type = "qwen2",
     .vocab_size = 151936,
     .d_mlp = 22016,
     .n_ctx = 32768,
     .d_model = 4096,
     .n_layers = 32,
     .n_heads = 32,
     .read = read_qwen2},
    {.model_type = "qwen3",
     .vocab_size = 151936,
     .d_mlp = 22016,
     .n_ctx = 32768,
     .d_model = 4096,
     .n_layers = 32,
     .n_heads = 32,
     .read = read_qwen3},
    {.model_type = "smollm3",
     .vocab_size = 128256,
     .d_mlp = 11008,
     .n_ctx = 32768,
     .tied = true,
     .rope_theta = 2000000,
     .read = read_smollm3},
    {.model_type = "ministral3",
     .vocab_size = 131072,
     .d_mlp = 14336,
     .n_ctx = 262144,
     .bos_id = 1,
     .eos_id = 2,
     .rope_theta = 1000000,
     .read = read_ministral3},
};

}  // namespace

std::span<const TensorName> llama_names() { return kNames; }
std::span<const Family> llama_families() { return kFamilies; }

}  // namespace sinkscope
