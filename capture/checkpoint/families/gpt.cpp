// SPDX-License-Identifier: GPL-3.0-or-later
// GPT-2, OPT and GPT-NeoX: LayerNorm with bias, a plain MLP, biases everywhere.
#include "capture/checkpoint/families/families.h"

namespace sinkscope {
namespace {

void layer_norms_and_biases(HfConfig& out) {
  ArchSpec& spec = out.spec;
  spec.norm_kind = NormKind::layer_norm;
  spec.norm_bias = true;
  spec.qkv_bias = spec.o_bias = spec.mlp_bias = true;
  spec.mlp_gated = false;
  spec.n_kv_heads = spec.n_heads;
}

constexpr TensorName kGpt2[] = {
    {Role::embed, "wte.weight"},
    {Role::pos_embed, "wpe.weight"},
    {Role::ln_final, "ln_f.weight"},
    {Role::ln_final_bias, "ln_f.bias"},
    {Role::ln1, "ln_1.weight"},
    {Role::ln1_bias, "ln_1.bias"},
    {Role::q, "attn.c_attn.weight", Packing::qkv_columns},
    {Role::k, "attn.c_attn.weight", Packing::qkv_columns},
    {Role::v, "attn.c_attn.weight", Packing::qkv_columns},
    {Role::q_bias, "attn.c_attn.bias", Packing::qkv_rows},
    {Role::k_bias, "attn.c_attn.bias", Packing::qkv_rows},
    {Role::v_bias, "attn.c_attn.bias", Packing::qkv_rows},
    {Role::o, "attn.c_proj.weight", Packing::transposed},
    {Role::o_bias, "attn.c_proj.bias"},
    {Role::ln2, "ln_2.weight"},
    {Role::ln2_bias, "ln_2.bias"},
    {Role::up, "mlp.c_fc.weight", Packing::transposed},
    {Role::up_bias, "mlp.c_fc.bias"},
    {Role::down, "mlp.c_proj.weight", Packing::transposed},
    {Role::down_bias, "mlp.c_proj.bias"},
};

void read_gpt2(const JsonKeys& keys, HfConfig& out) {
  ArchSpec& spec = out.spec;
  layer_norms_and_biases(out);
  spec.learned_positions = true;
  if (spec.d_mlp == 0) spec.d_mlp = 4 * spec.d_model;  // n_inner null
  if (keys.boolean("scale_attn_by_inverse_layer_idx").value_or(false))
    out.obstacles.push_back("scale_attn_by_inverse_layer_idx is not supported");
  if (!keys.boolean("scale_attn_weights").value_or(true)) spec.attention_scale = 1;
}

constexpr TensorName kOpt[] = {
    {Role::pos_embed, "embed_positions.weight"},
    {Role::ln_final, "final_layer_norm.weight"},
    {Role::ln_final_bias, "final_layer_norm.bias"},
    {Role::ln1, "self_attn_layer_norm.weight"},
    {Role::ln1_bias, "self_attn_layer_norm.bias"},
    {Role::o, "self_attn.out_proj.weight"},
    {Role::o_bias, "self_attn.out_proj.bias"},
    {Role::ln2, "final_layer_norm.weight"},
    {Role::ln2_bias, "final_layer_norm.bias"},
    {Role::up, "fc1.weight"},
    {Role::up_bias, "fc1.bias"},
    {Role::down, "fc2.weight"},
    {Role::down_bias, "fc2.bias"},
};

void read_opt(const JsonKeys& keys, HfConfig& out) {
  ArchSpec& spec = out.spec;
  layer_norms_and_biases(out);
  spec.norm_eps = 1e-5;  // fixed in the code, no key
  spec.learned_positions = true;
  spec.position_offset = 2;
  if (!keys.boolean("do_layer_norm_before").value_or(true))
    out.obstacles.push_back("do_layer_norm_before false (norms after the sums) is not supported");
  if (!keys.boolean("enable_bias").value_or(true))
    spec.qkv_bias = spec.o_bias = spec.mlp_bias = false;
  if (!keys.boolean("layer_norm_elementwise_affine").value_or(true))
    out.obstacles.push_back("norms without gains are not supported");
  if (keys.boolean("_remove_final_layer_norm").value_or(false))
    out.obstacles.push_back("a model without its final norm is not supported");
  const auto width = keys.whole("word_embed_proj_dim", 1, 1 << 26).value_or(spec.d_model);
  if (width != spec.d_model)
    out.obstacles.push_back("projected embeddings (word_embed_proj_dim) are not supported");
}

constexpr TensorName kNeox[] = {
    {Role::embed, "embed_in.weight"},
    {Role::unembed, "embed_out.weight"},
    {Role::unembed, "lm_head.weight"},
    {Role::ln_final, "final_layer_norm.weight"},
    {Role::ln_final_bias, "final_layer_norm.bias"},
    {Role::ln1_bias, "input_layernorm.bias"},
    {Role::q, "attention.query_key_value.weight", Packing::qkv_by_head},
    {Role::k, "attention.query_key_value.weight", Packing::qkv_by_head},
    {Role::v, "attention.query_key_value.weight", Packing::qkv_by_head},
    {Role::q_bias, "attention.query_key_value.bias", Packing::qkv_by_head},
    {Role::k_bias, "attention.query_key_value.bias", Packing::qkv_by_head},
    {Role::v_bias, "attention.query_key_value.bias", Packing::qkv_by_head},
    {Role::o, "attention.dense.weight"},
    {Role::o_bias, "attention.dense.bias"},
    {Role::ln2_bias, "post_attention_layernorm.bias"},
    {Role::up, "mlp.dense_h_to_4h.weight"},
    {Role::up_bias, "mlp.dense_h_to_4h.bias"},
    {Role::down, "mlp.dense_4h_to_h.weight"},
    {Role::down_bias, "mlp.dense_4h_to_h.bias"},
};

void read_neox(const JsonKeys& keys, HfConfig& out) {
  layer_norms_and_biases(out);
  out.spec.parallel = keys.boolean("use_parallel_residual").value_or(true);
  out.spec.qkv_bias = out.spec.o_bias = keys.boolean("attention_bias").value_or(true);
}

constexpr Family kFamilies[] = {
    {.model_type = "gpt2",
     .vocab_size = 50257,
     .n_ctx = 1024,
     .bos_id = 50256,
     .eos_id = 50256,
     .tied = true,
     .has_rope = false,
     .activation = "gelu_new",
     .names = kGpt2,
     .prefix = "transformer.",
     .layers = "h.",
     .read = read_gpt2},
    {.model_type = "opt",
     .vocab_size = 50272,
     .d_mlp = 3072,
     .n_ctx = 2048,
     .bos_id = 2,
     .eos_id = 2,
     .tied = true,
     .has_rope = false,
     .activation = "relu",
     .names = kOpt,
     .prefix = "model.decoder.",
     .read = read_opt},
    {.model_type = "gpt_neox",
     .vocab_size = 50432,
     .d_mlp = 24576,
     .n_ctx = 2048,
     .bos_id = 0,
     .eos_id = 2,
     .rotary_part = 0.25,
     .activation = "gelu",
     .names = kNeox,
     .prefix = "gpt_neox.",
     .read = read_neox},
};

}  // namespace

std::span<const Family> gpt_families() { return kFamilies; }

}  // namespace sinkscope
