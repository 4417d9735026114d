// SPDX-License-Identifier: GPL-3.0-or-later
// GPT-OSS: sink logits, every other layer windowed, experts with a clamped unit, biases everywhere.
#include <algorithm>

#include "capture/checkpoint/families/families.h"

namespace sinkscope {
namespace {

constexpr TensorName kGptOss[] = {
    {Role::sink, "self_attn.sinks"},
    {Role::router, "mlp.router.weight"},
    {Role::router_bias, "mlp.router.bias"},
    {Role::expert_gate, "mlp.experts.gate_up_proj_blocks", Packing::experts_alternate},
    {Role::expert_gate, "mlp.experts.gate_up_proj", Packing::experts_alternate_columns},
    {Role::expert_up, "mlp.experts.gate_up_proj_blocks", Packing::experts_alternate},
    {Role::expert_up, "mlp.experts.gate_up_proj", Packing::experts_alternate_columns},
    {Role::expert_down, "mlp.experts.down_proj_blocks"},
    {Role::expert_down, "mlp.experts.down_proj", Packing::experts_transposed},
    {Role::expert_gate_bias, "mlp.experts.gate_up_proj_bias", Packing::experts_alternate},
    {Role::expert_up_bias, "mlp.experts.gate_up_proj_bias", Packing::experts_alternate},
    {Role::expert_down_bias, "mlp.experts.down_proj_bias"},
};

// OpenAI's own files.
constexpr TensorName kOpenAi[] = {
    {Role::embed, "embedding.weight"},
    {Role::unembed, "unembedding.weight"},
    {Role::ln_final, "norm.scale"},
    {Role::ln1, "attn.norm.scale"},
    {Role::q, "attn.qkv.weight", Packing::qkv_rows},
    {Role::k, "attn.qkv.weight", Packing::qkv_rows},
    {Role::v, "attn.qkv.weight", Packing::qkv_rows},
    {Role::q_bias, "attn.qkv.bias", Packing::qkv_rows},
    {Role::k_bias, "attn.qkv.bias", Packing::qkv_rows},
    {Role::v_bias, "attn.qkv.bias", Packing::qkv_rows},
    {Role::o, "attn.out.weight"},
    {Role::o_bias, "attn.out.bias"},
    {Role::sink, "attn.sinks"},
    {Role::ln2, "mlp.norm.scale"},
    {Role::router, "mlp.gate.weight"},
    {Role::router_bias, "mlp.gate.bias"},
    {Role::expert_gate, "mlp.mlp1_weight.blocks", Packing::experts_alternate},
    {Role::expert_gate, "mlp.mlp1_weight", Packing::experts_alternate},
    {Role::expert_up, "mlp.mlp1_weight.blocks", Packing::experts_alternate},
    {Role::expert_up, "mlp.mlp1_weight", Packing::experts_alternate},
    {Role::expert_down, "mlp.mlp2_weight.blocks"},
    {Role::expert_down, "mlp.mlp2_weight"},
    {Role::expert_gate_bias, "mlp.mlp1_bias", Packing::experts_alternate},
    {Role::expert_up_bias, "mlp.mlp1_bias", Packing::experts_alternate},
    {Role::expert_down_bias, "mlp.mlp2_bias"},
};

void read_gpt_oss(const JsonKeys& keys, HfConfig& out) {
  ArchSpec& spec = out.spec;
  if (!keys.has("rms_norm_eps")) spec.norm_eps = 1e-5;
  spec.qkv_bias = spec.o_bias = keys.boolean("attention_bias").value_or(true);
  spec.sinks.assign(static_cast<std::size_t>(spec.n_layers), true);
  window_layers(keys, 128, out, [](int layer) { return layer % 2 == 0; });
  read_experts(keys, {"num_local_experts", "num_experts"},
               {"num_experts_per_tok", "experts_per_token"}, "intermediate_size", out);
  spec.d_mlp = 0;  // intermediate_size is an expert's width
  MoeSpec& moe = spec.moe;
  moe.score = RouterScore::chosen_softmax;
  moe.router_bias = moe.expert_bias = true;
  moe.clamp = keys.number("swiglu_limit").value_or(7);
  moe.sharpness = keys.number("swiglu_alpha").value_or(1.702);
}

// The config beside them says positions in words of its own: yarn, neither end of its ramp rounded.
void read_openai(const JsonKeys& keys, HfConfig& out) {
  read_gpt_oss(keys, out);
  ArchSpec& spec = out.spec;
  RopeSpec& rope = spec.rope;
  rope.factor = keys.number("rope_scaling_factor").value_or(32);
  rope.original_context = keys.number("initial_context_length").value_or(4096);
  if (!(rope.original_context > 0) || !(rope.factor > 0)) {
    out.obstacles.push_back("initial_context_length and rope_scaling_factor: expected above 0");
    return;
  }
  if (rope.factor > 1) rope.scaling = RopeScaling::yarn;
  rope.beta_fast = keys.number("rope_ntk_beta").value_or(32);
  rope.beta_slow = keys.number("rope_ntk_alpha").value_or(1);
  rope.truncate = false;
  spec.n_ctx = static_cast<int>(std::min(rope.original_context * rope.factor, 1.0 * (1 << 26)));
}

constexpr Family kFamilies[] = {
    {.model_type = "gpt_oss",
     .vocab_size = 201088,
     .d_mlp = 2880,
     .n_ctx = 131072,
     .rope_theta = 150000,
     .names = kGptOss,
     .read = read_gpt_oss},
    {.model_type = kOpenAiGptOss,
     .vocab_size = 201088,
     .d_mlp = 2880,
     .n_ctx = 131072,
     .rope_theta = 150000,
     .names = kOpenAi,
     .prefix = "",
     .layers = "block.",
     .read = read_openai},
};

}  // namespace

std::span<const Family> gpt_oss_families() { return kFamilies; }

}  // namespace sinkscope
