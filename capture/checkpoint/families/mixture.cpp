// SPDX-License-Identifier: GPL-3.0-or-later
// Qwen3-MoE and Mixtral: a Llama block whose MLP is a mixture of experts.
#include "capture/checkpoint/families/families.h"

namespace sinkscope {
namespace {

void read_qwen3_moe(const JsonKeys& keys, HfConfig& out) {
  ArchSpec& spec = out.spec;
  spec.qk_norm = QkNorm::per_head;
  read_attention_bias(keys, out);
  if (keys.boolean("use_sliding_window").value_or(false))
    window_layers(keys, 4096, out, [](int) { return true; });
  read_experts(keys, {"num_experts", "num_local_experts"}, {"num_experts_per_tok"},
               "moe_intermediate_size", out);
  spec.moe.renormalize = keys.boolean("norm_topk_prob").value_or(false);
  read_sparse_layers(keys, {}, out);
}

constexpr TensorName kMixtral[] = {
    {Role::router, "block_sparse_moe.gate.weight"},
    {Role::router, "mlp.gate.weight"},
    {Role::expert_gate, "block_sparse_moe.experts.{}.w1.weight", Packing::expert_each},
    {Role::expert_gate, "mlp.experts.gate_up_proj", Packing::experts_gate_up},
    {Role::expert_up, "block_sparse_moe.experts.{}.w3.weight", Packing::expert_each},
    {Role::expert_up, "mlp.experts.gate_up_proj", Packing::experts_gate_up},
    {Role::expert_down, "block_sparse_moe.experts.{}.w2.weight", Packing::expert_each},
    {Role::expert_down, "mlp.experts.down_proj"},
};

void read_mixtral(const JsonKeys& keys, HfConfig& out) {
  read_experts(keys, {"num_local_experts", "num_experts"}, {"num_experts_per_tok"},
               "intermediate_size", out);
  out.spec.d_mlp = 0;  // intermediate_size is an expert's width
  window_layers(keys, 0, out, [](int) { return true; });
}

constexpr Family kFamilies[] = {
    {.model_type = "qwen3_moe",
     .vocab_size = 151936,
     .d_mlp = 6144,
     .n_ctx = 32768,
     .read = read_qwen3_moe},
    {.model_type = "mixtral",
     .vocab_size = 32000,
     .d_mlp = 14336,
     .n_ctx = 131072,
     .bos_id = 1,
     .eos_id = 2,
     .rope_theta = 1000000,
     .names = kMixtral,
     .read = read_mixtral},
};

}  // namespace

std::span<const Family> mixture_families() { return kFamilies; }

}  // namespace sinkscope
