// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/gguf_families.h"

#include <algorithm>
#include <cmath>

#include "capture/checkpoint/gguf_file.h"

namespace sinkscope {
namespace {

constexpr TensorName kNames[] = {
    {Role::embed, "token_embd.weight"},
    {Role::unembed, "output.weight"},
    {Role::pos_embed, "position_embd.weight"},
    {Role::ln_final, "output_norm.weight"},
    {Role::ln_final_bias, "output_norm.bias"},
    {Role::rope_divisors, "rope_freqs.weight"},
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

bool has_tensor(const GgufFile& file, const std::string& name) { return file.find(name) >= 0; }

// Experts where a block has a router; their width under its own key or the MLP's.
void read_mixture(const GgufKeys& keys, const GgufFile& file, GgufModel& model) {
  ArchSpec& spec = model.spec;
  MoeSpec& moe = spec.moe;
  moe.n_experts = keys.whole("expert_count", 0, 1 << 20).value_or(0);
  if (moe.n_experts == 0) return;
  moe.n_used = keys.required("expert_used_count", 1, moe.n_experts);
  moe.d_expert = keys.whole("expert_feed_forward_length", 1, 1 << 24).value_or(spec.d_mlp);
  bool all = true;
  for (int layer = 0; layer < spec.n_layers; ++layer) {
    spec.moe_layers.push_back(
        has_tensor(file, "blk." + std::to_string(layer) + ".ffn_gate_inp.weight"));
    all = all && spec.moe_layers.back();
  }
  if (all) spec.d_mlp = 0;
}

void read_qwen2(const GgufKeys&, const GgufFile&, GgufModel& model) { model.spec.qkv_bias = true; }

void read_qwen3(const GgufKeys&, const GgufFile&, GgufModel& model) {
  model.spec.qk_norm = QkNorm::per_head;
}

void read_qwen3_moe(const GgufKeys& keys, const GgufFile& file, GgufModel& model) {
  read_qwen3(keys, file, model);
  read_mixture(keys, file, model);
}

void read_gpt(const GgufKeys& keys, const GgufFile&, GgufModel& model) {
  ArchSpec& spec = model.spec;
  spec.norm_kind = NormKind::layer_norm;
  spec.norm_bias = spec.qkv_bias = spec.o_bias = spec.mlp_bias = true;
  spec.mlp_gated = false;
  spec.activation = Activation::gelu_tanh;
  if (spec.architecture == "gptneox") {
    spec.activation = Activation::gelu;
    spec.parallel = keys.truth("use_parallel_residual").value_or(true);
  } else {
    spec.learned_positions = true;
    spec.rope = RopeSpec();
    spec.rope.partial = 0;
  }
}

void read_gemma(const GgufKeys& keys, const GgufFile&, GgufModel& model) {
  ArchSpec& spec = model.spec;
  spec.has_ln1_post = spec.has_ln2_post = true;
  spec.activation = Activation::gelu_tanh;
  spec.embed_scale = std::sqrt(static_cast<double>(spec.d_model));
  const bool is_second = spec.architecture == "gemma2";
  spec.score_cap = keys.number("attn_logit_softcapping").value_or(is_second ? 50 : 0);
  spec.logit_cap = keys.number("final_logit_softcapping").value_or(is_second ? 30 : 0);
  // The 27B models scale by width / heads, which no key says; they are known by their depth.
  if (!keys.has("attention.scale") && spec.n_heads > 0 && spec.n_layers == (is_second ? 46 : 62))
    spec.attention_scale = 1 / std::sqrt(static_cast<double>(spec.d_model) / spec.n_heads);
  if (is_second) return;
  spec.qk_norm = QkNorm::per_head;
  RopeSpec local;
  local.rotary_dim = spec.rope.rotary_dim;
  local.theta = keys.number("rope.freq_base_swa").value_or(10000);
  for (const int window : spec.window) spec.layer_ropes.push_back(window > 0 ? local : spec.rope);
}

void read_olmo2(const GgufKeys&, const GgufFile&, GgufModel& model) {
  ArchSpec& spec = model.spec;
  spec.has_ln1 = spec.has_ln2 = false;
  spec.has_ln1_post = spec.has_ln2_post = true;
  spec.qk_norm = QkNorm::whole;
  const bool is_windowed =
      std::any_of(spec.window.begin(), spec.window.end(), [](int w) { return w > 0; });
  if (!is_windowed) return;
  RopeSpec local = spec.rope;  // OLMo 3: scaling belongs to the layers that see everything
  local.scaling = RopeScaling::none;
  for (const int window : spec.window) spec.layer_ropes.push_back(window > 0 ? local : spec.rope);
}

std::vector<double> small_vector(const GgufFile& file, const std::string& name, std::int64_t n) {
  const int tensor = file.find(name);
  if (tensor < 0 || file.tensors()[static_cast<std::size_t>(tensor)].n_elements() != n) return {};
  std::vector<float> values(static_cast<std::size_t>(n));
  file.read_rows(tensor, 0, 1, values.data());
  return {values.begin(), values.end()};
}

void read_phi3(const GgufKeys& keys, const GgufFile& file, GgufModel& model) {
  RopeSpec& rope = model.spec.rope;
  if (!has_tensor(file, "rope_factors_long.weight")) return;
  rope.scaling = RopeScaling::longrope;
  rope.long_factor = small_vector(file, "rope_factors_long.weight", rope.rotary_dim / 2);
  rope.short_factor = small_vector(file, "rope_factors_short.weight", rope.rotary_dim / 2);
  rope.original_context =
      keys.number("rope.scaling.original_context_length").value_or(model.spec.n_ctx);
  rope.factor = rope.original_context > 0 ? model.spec.n_ctx / rope.original_context : 1;
  rope.attention_factor = keys.number("rope.scaling.attn_factor");
  if (rope.long_factor.empty() || rope.short_factor.empty())
    model.obstacles.push_back("rope_factors_long and rope_factors_short do not fit the heads");
}

void read_granite(const GgufKeys& keys, const GgufFile&, GgufModel& model) {
  ArchSpec& spec = model.spec;
  spec.embed_scale = keys.number("embedding_scale").value_or(1);
  spec.residual_scale = keys.number("residual_scale").value_or(1);
  const double divisor = keys.number("logit_scale").value_or(1);
  spec.logit_scale = divisor > 0 ? 1 / divisor : 1;
}

void read_gpt_oss(const GgufKeys& keys, const GgufFile& file, GgufModel& model) {
  ArchSpec& spec = model.spec;
  spec.qkv_bias = spec.o_bias = true;
  spec.sinks.assign(static_cast<std::size_t>(spec.n_layers), true);
  spec.rope.truncate = false;  // as OpenAI's code; llama.cpp rounds
  read_mixture(keys, file, model);
  spec.moe.score = RouterScore::chosen_softmax;
  spec.moe.router_bias = spec.moe.expert_bias = true;
  spec.moe.clamp = 7;
  spec.moe.sharpness = 1.702;
}

constexpr GgufFamily kFamilies[] = {
    {.architecture = "llama",
     .pairs = true,
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
     .pairs = true,
     .reads = " embedding_scale residual_scale logit_scale ",
     .read = read_granite},
    {.architecture = "gpt-oss",
     .names = kGptOss,
     .windows = true,
     .window_period = 2,
     .reads = " expert_count ",
     .read = read_gpt_oss},
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

std::span<const TensorName> names_of(const GgufFamily& family, Role role) {
  const auto own = lines_of(family.names, role);
  return own.empty() ? lines_of(kNames, role) : own;
}

}  // namespace sinkscope
