// SPDX-License-Identifier: GPL-3.0-or-later
// GPT-OSS: sink logits, every other layer windowed, experts with a clamped unit, biases everywhere.
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

void read_gpt_oss(const JsonKeys& keys, HfConfig& out) {
  ArchSpec& spec = out.spec;
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

constexpr Family kFamilies[] = {
    {.model_type = "gpt_oss",
     .vocab_size = 201088,
     .d_mlp = 2880,
     .n_ctx = 131072,
     .rope_theta = 150000,
     .names = kGptOss,
     .read = read_gpt_oss},
};

}  // namespace

std::span<const Family> gpt_oss_families() { return kFamilies; }

}  // namespace sinkscope
