// SPDX-License-Identifier: GPL-3.0-or-later
// Qwen3-Next and Qwen3.5: gated delta-nets and gated attention in turns, norms 1 + w, experts with
// a gated shared one or a dense MLP.
#include "capture/checkpoint/families/families.h"

namespace sinkscope {
namespace {

constexpr TensorName kNext[] = {
    {Role::q, "self_attn.q_proj.weight", Packing::query_gate_by_head},
    {Role::attn_gate, "self_attn.q_proj.weight", Packing::query_gate_by_head},
    {Role::o, "linear_attn.out_proj.weight"},
    {Role::o, "self_attn.o_proj.weight"},
    {Role::delta_q, "linear_attn.in_proj_qkvz.weight", Packing::delta_by_head},
    {Role::delta_q, "linear_attn.in_proj_qkv.weight", Packing::delta_rows},
    {Role::delta_k, "linear_attn.in_proj_qkvz.weight", Packing::delta_by_head},
    {Role::delta_k, "linear_attn.in_proj_qkv.weight", Packing::delta_rows},
    {Role::delta_v, "linear_attn.in_proj_qkvz.weight", Packing::delta_by_head},
    {Role::delta_v, "linear_attn.in_proj_qkv.weight", Packing::delta_rows},
    {Role::delta_gate, "linear_attn.in_proj_qkvz.weight", Packing::delta_by_head},
    {Role::delta_gate, "linear_attn.in_proj_z.weight"},
    {Role::delta_beta, "linear_attn.in_proj_ba.weight", Packing::delta_pairs_by_head},
    {Role::delta_beta, "linear_attn.in_proj_b.weight"},
    {Role::delta_decay, "linear_attn.in_proj_ba.weight", Packing::delta_pairs_by_head},
    {Role::delta_decay, "linear_attn.in_proj_a.weight"},
    {Role::delta_conv, "linear_attn.conv1d.weight", Packing::reshaped},
    {Role::delta_log_rate, "linear_attn.A_log"},
    {Role::delta_dt_bias, "linear_attn.dt_bias"},
    {Role::delta_norm, "linear_attn.norm.weight"},
    {Role::shared_gate, "mlp.shared_expert.gate_proj.weight"},
    {Role::shared_up, "mlp.shared_expert.up_proj.weight"},
    {Role::shared_down, "mlp.shared_expert.down_proj.weight"},
    {Role::shared_router, "mlp.shared_expert_gate.weight"},
};

void read_mixers(const JsonKeys& keys, HfConfig& out) {
  ArchSpec& spec = out.spec;
  spec.qk_norm = QkNorm::per_head;
  spec.attn_gate = true;
  if (keys.boolean("attention_bias").value_or(false))
    out.obstacles.push_back("attention_bias beside an attention gate is not supported");
  DeltaSpec& delta = spec.delta;
  const auto size = [&](const char* name, int fallback) {
    return static_cast<int>(keys.whole(name, 1, 1 << 16).value_or(fallback));
  };
  delta.n_key_heads = size("linear_num_key_heads", 16);
  delta.n_value_heads = size("linear_num_value_heads", 32);
  delta.key_dim = size("linear_key_head_dim", 128);
  delta.value_dim = size("linear_value_head_dim", 128);
  delta.n_taps = size("linear_conv_kernel_dim", 4);
  if (delta.n_value_heads % delta.n_key_heads != 0)
    out.obstacles.push_back("linear_num_value_heads is not a multiple of linear_num_key_heads");
  if (!out.layer_types.empty()) return;
  const int interval = size("full_attention_interval", 4);
  spec.mixers.assign(static_cast<std::size_t>(spec.n_layers), Mixer::delta);
  for (int layer = interval - 1; layer < spec.n_layers; layer += interval)
    spec.mixers[static_cast<std::size_t>(layer)] = Mixer::attention;
}

void read_shared_experts(const JsonKeys& keys, HfConfig& out) {
  read_experts(keys, {"num_experts"}, {"num_experts_per_tok"}, "moe_intermediate_size", out);
  MoeSpec& moe = out.spec.moe;
  moe.renormalize = keys.boolean("norm_topk_prob").value_or(true);
  moe.d_shared =
      static_cast<int>(keys.whole("shared_expert_intermediate_size", 0, 1 << 26).value_or(0));
  moe.shared_router = moe.d_shared > 0;
}

void read_next(const JsonKeys& keys, HfConfig& out) {
  read_mixers(keys, out);
  read_shared_experts(keys, out);
  read_sparse_layers(keys, {}, out);
}

void read_qwen35_moe(const JsonKeys& keys, HfConfig& out) {
  read_mixers(keys, out);
  read_shared_experts(keys, out);
  out.spec.moe.renormalize = true;  // no key: always
}

constexpr Family kFamilies[] = {
    {.model_type = "qwen3_next",
     .vocab_size = 151936,
     .d_mlp = 5632,
     .n_ctx = 32768,
     .rotary_part = 0.25,
     .has_delta = true,
     .names = kNext,
     .read = read_next},
    {.model_type = "qwen3_5_text",
     .vocab_size = 248320,
     .d_mlp = 12288,
     .n_ctx = 32768,
     .rotary_part = 0.25,
     .has_delta = true,
     .names = kNext,
     .read = read_mixers},
    {.model_type = "qwen3_5_moe_text",
     .vocab_size = 248320,
     .d_mlp = 12288,
     .n_ctx = 32768,
     .rotary_part = 0.25,
     .has_delta = true,
     .names = kNext,
     .read = read_qwen35_moe},
};

}  // namespace

std::span<const Family> qwen_next_families() { return kFamilies; }

}  // namespace sinkscope
