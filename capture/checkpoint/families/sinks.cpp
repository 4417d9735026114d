// SPDX-License-Identifier: GPL-3.0-or-later
// MiMo-V2-Flash and Flint: windowed layers with sink logits, experts chosen by a sigmoid.
#include "capture/checkpoint/families/families.h"

namespace sinkscope {
namespace {

constexpr TensorName kMimo[] = {{Role::sink, "self_attn.attention_sink_bias"}};

// Windowed layers have twice the key/value heads, and the only sinks.
void read_mimo(const JsonKeys& keys, HfConfig& out) {
  ArchSpec& spec = out.spec;
  read_attention_bias(keys, out);
  read_grouped_experts(keys, out);
  spec.value_dim = static_cast<int>(keys.whole("v_head_dim", 1, 1 << 16).value_or(0));
  spec.value_scale = keys.number("attention_value_scale").value_or(1);
  if (out.layer_types.empty()) {
    out.obstacles.push_back("config.json has no layer_types");
    return;
  }
  if (spec.n_kv_heads == 0) {
    out.obstacles.push_back("config.json has no num_key_value_heads");
    return;
  }
  for (const int window : spec.window) {
    spec.sinks.push_back(window > 0);
    spec.layer_kv_heads.push_back(window > 0 ? 2 * spec.n_kv_heads : spec.n_kv_heads);
  }
  if (spec.n_heads % (2 * spec.n_kv_heads) != 0)
    out.obstacles.push_back("the windowed layers' key/value heads do not divide the query heads");
}

constexpr TensorName kFlint[] = {
    {Role::sink, "self_attn.softmax_offset"},
    {Role::shared_gate, "mlp.shared_expert.gate_proj.weight"},
    {Role::shared_up, "mlp.shared_expert.up_proj.weight"},
    {Role::shared_down, "mlp.shared_expert.down_proj.weight"},
};

// Rotary positions on windowed layers only.
void read_flint(const JsonKeys& keys, HfConfig& out) {
  ArchSpec& spec = out.spec;
  spec.qk_norm = QkNorm::per_head;
  read_attention_bias(keys, out);
  const int last = spec.n_layers - 1;
  window_layers(keys, 0, out,
                [last](int layer) { return layer >= 2 && layer % 4 != 1 && layer != last; });
  spec.sinks.assign(static_cast<std::size_t>(spec.n_layers), true);
  RopeSpec none;
  none.partial = 0;
  for (const int window : spec.window) spec.layer_ropes.push_back(window > 0 ? spec.rope : none);
  read_experts(keys, {"num_experts"}, {"num_experts_per_tok"}, "moe_intermediate_size", out);
  MoeSpec& moe = spec.moe;
  moe.score = RouterScore::sigmoid;
  moe.renormalize = keys.boolean("norm_topk_prob").value_or(true);
  moe.d_shared =
      static_cast<int>(keys.whole("shared_expert_intermediate_size", 0, 1 << 26).value_or(0));
  read_sparse_layers(keys, {0, 1}, out);
}

constexpr Family kFamilies[] = {
    {.model_type = "mimo_v2_flash",
     .vocab_size = 152576,
     .d_mlp = 16384,
     .n_ctx = 262144,
     .rotary_part = 0.334,
     .names = kMimo,
     .reach_key = "sliding_window_size",
     .read = read_mimo},
    {.model_type = "flint",
     .vocab_size = 151936,
     .d_mlp = 6144,
     .n_ctx = 32768,
     .names = kFlint,
     .read = read_flint},
};

}  // namespace

std::span<const Family> sink_families() { return kFamilies; }

}  // namespace sinkscope
