// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/gguf_families.h"

#include "capture/checkpoint/gguf_readers.h"

namespace sinkscope {
namespace {

constexpr TensorName kNames[] = {
    {Role::embed, "token_embd.weight"},
    {Role::unembed, "output.weight"},
    {Role::pos_embed, "position_embd.weight"},
    {Role::ln_final, "output_norm.weight"},
    {Role::ln_final_bias, "output_norm.bias"},
    {Role::rope_divisors, "rope_freqs.weight"},
    {Role::type_embed, "token_types.weight"},
    {Role::embed_norm, "token_embd_norm.weight"},
    {Role::embed_norm_bias, "token_embd_norm.bias"},
    {Role::ln1, "attn_norm.weight"},
    {Role::ln1_bias, "attn_norm.bias"},
    {Role::q, "attn_q.weight"},
    {Role::k, "attn_k.weight"},
    {Role::v, "attn_v.weight"},
    {Role::o, "attn_output.weight"},
    {Role::q_bias, "attn_q.bias"},
    {Role::k_bias, "attn_k.bias"},
    {Role::v_bias, "attn_v.bias"},
    {Role::o_bias, "attn_output.bias"},
    {Role::q_norm, "attn_q_norm.weight"},
    {Role::k_norm, "attn_k_norm.weight"},
    {Role::sink, "attn_sinks.weight"},
    {Role::ln1_post, "post_attention_norm.weight"},
    {Role::ln2, "ffn_norm.weight"},
    {Role::ln2_bias, "ffn_norm.bias"},
    {Role::ln2_post, "post_ffw_norm.weight"},
    {Role::gate, "ffn_gate.weight"},
    {Role::up, "ffn_up.weight"},
    {Role::down, "ffn_down.weight"},
    {Role::gate_bias, "ffn_gate.bias"},
    {Role::up_bias, "ffn_up.bias"},
    {Role::down_bias, "ffn_down.bias"},
    {Role::router, "ffn_gate_inp.weight"},
    {Role::router_bias, "ffn_gate_inp.bias"},
    {Role::expert_gate, "ffn_gate_exps.weight"},
    {Role::expert_up, "ffn_up_exps.weight"},
    {Role::expert_down, "ffn_down_exps.weight"},
    {Role::expert_gate_bias, "ffn_gate_exps.bias"},
    {Role::expert_up_bias, "ffn_up_exps.bias"},
    {Role::expert_down_bias, "ffn_down_exps.bias"},
    {Role::choice_bias, "exp_probs_b.bias"},
    {Role::choice_bias, "exp_probs_b"},
    {Role::shared_gate, "ffn_gate_shexp.weight"},
    {Role::shared_up, "ffn_up_shexp.weight"},
    {Role::shared_down, "ffn_down_shexp.weight"},
    {Role::shared_router, "ffn_gate_inp_shexp.weight", Packing::reshaped},
};

// Converters of these families put the rows of q and k that are rotated together beside each other.
constexpr TensorName kPairs[] = {
    {Role::q, "attn_q.weight", Packing::rotary_pairs},
    {Role::k, "attn_k.weight", Packing::rotary_pairs},
    {Role::q_bias, "attn_q.bias", Packing::rotary_pairs},
    {Role::k_bias, "attn_k.bias", Packing::rotary_pairs},
};

// One tensor for q, k and v: GPT-2, and GPT-NeoX, whose rows the converter regroups.
constexpr TensorName kFusedQkv[] = {
    {Role::q, "attn_qkv.weight", Packing::qkv_rows},
    {Role::k, "attn_qkv.weight", Packing::qkv_rows},
    {Role::v, "attn_qkv.weight", Packing::qkv_rows},
    {Role::q_bias, "attn_qkv.bias", Packing::qkv_rows},
    {Role::k_bias, "attn_qkv.bias", Packing::qkv_rows},
    {Role::v_bias, "attn_qkv.bias", Packing::qkv_rows},
};

constexpr TensorName kPhi3[] = {
    {Role::q, "attn_qkv.weight", Packing::qkv_rows},
    {Role::k, "attn_qkv.weight", Packing::qkv_rows},
    {Role::v, "attn_qkv.weight", Packing::qkv_rows},
    {Role::gate, "ffn_up.weight", Packing::gate_up_rows},
    {Role::up, "ffn_up.weight", Packing::gate_up_rows},
};

constexpr TensorName kGptOss[] = {
    {Role::ln2, "post_attention_norm.weight"},
};

// Queries with the gates beside them as in the Hugging Face file; what a delta-net's one projection
// held by key heads is taken apart, but for beta and decay. Old files keep it (ssm_in).
constexpr TensorName kQwen3Next[] = {
    {Role::ln2, "post_attention_norm.weight"},
    {Role::q, "attn_q.weight", Packing::query_gate_by_head},
    {Role::attn_gate, "attn_q.weight", Packing::query_gate_by_head},
    {Role::o, "ssm_out.weight"},
    {Role::o, "attn_output.weight"},
    {Role::delta_q, "attn_qkv.weight", Packing::delta_rows},
    {Role::delta_q, "ssm_in.weight", Packing::delta_by_head},
    {Role::delta_k, "attn_qkv.weight", Packing::delta_rows},
    {Role::delta_k, "ssm_in.weight", Packing::delta_by_head},
    {Role::delta_v, "attn_qkv.weight", Packing::delta_rows},
    {Role::delta_v, "ssm_in.weight", Packing::delta_by_head},
    {Role::delta_gate, "attn_gate.weight"},
    {Role::delta_gate, "ssm_in.weight", Packing::delta_by_head},
    {Role::delta_beta, "ssm_ba.weight", Packing::delta_pairs_by_head},
    {Role::delta_decay, "ssm_ba.weight", Packing::delta_pairs_by_head},
    {Role::delta_conv, "ssm_conv1d.weight", Packing::reshaped},
    {Role::delta_log_rate, "ssm_a", Packing::minus_exp},
    {Role::delta_dt_bias, "ssm_dt.bias"},
    {Role::delta_dt_bias, "ssm_dt"},
    {Role::delta_norm, "ssm_norm.weight"},
};

// The norms stand behind the halves.
constexpr TensorName kBert[] = {
    {Role::ln1_post, "attn_output_norm.weight"},
    {Role::ln1_post_bias, "attn_output_norm.bias"},
    {Role::ln2_post, "layer_output_norm.weight"},
    {Role::ln2_post_bias, "layer_output_norm.bias"},
};

// Keys and values out of the latent in one matrix, or a stack of each, a matrix a head.
constexpr TensorName kDeepseek2[] = {
    {Role::q_a, "attn_q_a.weight"},
    {Role::q_a_norm, "attn_q_a_norm.weight"},
    {Role::q, "attn_q_b.weight"},
    {Role::q, "attn_q.weight"},
    {Role::kv_a, "attn_kv_a_mqa.weight"},
    {Role::kv_a_norm, "attn_kv_a_norm.weight"},
    {Role::k, "attn_k_b.weight", Packing::head_stack_transposed},
    {Role::k, "attn_kv_b.weight", Packing::key_value_by_head},
    {Role::v, "attn_v_b.weight", Packing::head_stack},
    {Role::v, "attn_kv_b.weight", Packing::key_value_by_head},
};

constexpr GgufFamily kFamilies[] = {
    {.architecture = "llama",
     .names = kPairs,
     .windows = true,
     .reads = " expert_count ",
     .read = read_mixture},
    {.architecture = "qwen2", .read = read_qwen2},
    {.architecture = "qwen3", .read = read_qwen3},
    {.architecture = "qwen3moe", .reads = " expert_count ", .read = read_qwen3_moe},
    {.architecture = "gpt2", .names = kFusedQkv, .read = read_gpt},
    {.architecture = "gptneox", .names = kFusedQkv, .read = read_gpt},
    {.architecture = "gemma2",
     .one_plus = true,
     .windows = true,
     .window_period = 2,
     .reads = " attn_logit_softcapping final_logit_softcapping ",
     .read = read_gemma},
    {.architecture = "gemma3",
     .one_plus = true,
     .windows = true,
     .window_period = 6,
     .reads = " attn_logit_softcapping final_logit_softcapping ",
     .read = read_gemma},
    {.architecture = "olmo2", .windows = true, .window_period = 4, .read = read_olmo2},
    {.architecture = "phi3", .names = kPhi3, .windows = true, .read = read_phi3},
    {.architecture = "granite",
     .names = kPairs,
     .reads = " embedding_scale residual_scale logit_scale ",
     .read = read_granite},
    {.architecture = "gpt-oss",
     .names = kGptOss,
     .windows = true,
     .window_period = 2,
     .reads = " expert_count ",
     .read = read_gpt_oss},
    {.architecture = "qwen3next",
     .names = kQwen3Next,
     .one_plus = true,
     .reads = " expert_count ",
     .read = read_qwen3_next},
    {.architecture = "bert", .names = kBert, .reads = " attention.causal ", .read = read_bert},
    {.architecture = "smollm3", .names = kPairs, .read = read_smollm3},
    {.architecture = "mistral3",
     .names = kPairs,
     .windows = true,
     .reads = " expert_count ",
     .read = read_mistral3},
    {.architecture = "deepseek2",
     .names = kDeepseek2,
     .latent = true,
     .reads = " expert_count ",
     .read = read_deepseek2},
};

}  // namespace

const GgufFamily* find_gguf_family(const std::string& architecture) {
  for (const GgufFamily& family : kFamilies)
    if (architecture == family.architecture) return &family;
  return nullptr;
}

std::string gguf_family_names() {
  std::string all;
  for (const GgufFamily& family : kFamilies)
    all += std::string(all.empty() ? "" : ", ") + family.architecture;
  return all;
}

std::span<const TensorName> gguf_names() { return kNames; }

}  // namespace sinkscope
