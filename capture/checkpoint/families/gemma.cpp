// SPDX-License-Identifier: GPL-3.0-or-later
// Gemma 2 and 3 (text): norms 1 + w on both sides of a sub-layer, scaled embeddings, soft-caps or
// q/k norms, windowed layers with rotary positions of their own.
#include <cmath>

#include "capture/checkpoint/families/families.h"

namespace sinkscope {
namespace {

constexpr TensorName kGemma[] = {
    {Role::ln1_post, "post_attention_layernorm.weight"},
    {Role::ln2, "pre_feedforward_layernorm.weight"},
    {Role::ln2_post, "post_feedforward_layernorm.weight"},
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
};

}  // namespace

std::span<const Family> gemma_families() { return kFamilies; }

}  // namespace sinkscope
