// SPDX-License-Identifier: GPL-3.0-or-later
// Inkling 2: attention over depth, logits by distance in place of positions, short convolutions, a
// sink logit for each query, experts chosen by a sigmoid.
#include "capture/checkpoint/families/families.h"

namespace sinkscope {
namespace {

constexpr TensorName kInkling[] = {
    {Role::embed, "embed.weight"},
    {Role::unembed, "unembed.weight"},
    {Role::embed_norm, "embed_norm.weight"},
    {Role::depth_final_query, "attn_res.output_query"},
    {Role::ln1, "attn_norm.weight"},
    {Role::ln1, "q_input_norm.weight"},
    {Role::ln1_k, "k_input_norm.weight"},
    {Role::ln1_v, "v_input_norm.weight"},
    {Role::q, "attn.wq_du.weight"},
    {Role::k, "attn.wk_dv.weight"},
    {Role::v, "attn.wv_dv.weight"},
    {Role::o, "attn.wo_ud.weight"},
    {Role::attn_gate, "attn.gate_attn.weight"},
    {Role::sink_proj, "attn.attn_sink_proj.weight"},
    {Role::r, "attn.wr_du.weight"},
    {Role::profiles, "attn.rel_logits_proj.proj"},
    {Role::q_scale, "attn.q_l2_clip.scale"},
    {Role::r_scale, "attn.rel_l2_clip.scale"},
    {Role::k_conv, "attn.k_sconv.weight", Packing::reshaped},
    {Role::v_conv, "attn.v_sconv.weight", Packing::reshaped},
    {Role::k_taps, "attn.k_sconv.static_w"},
    {Role::k_taps_proj, "attn.k_sconv.weight_proj"},
    {Role::v_taps, "attn.v_sconv.static_w"},
    {Role::v_taps_proj, "attn.v_sconv.weight_proj"},
    {Role::attn_conv, "attn_sconv.weight", Packing::reshaped},
    {Role::mlp_conv, "mlp_sconv.weight", Packing::reshaped},
    {Role::depth_attn_query, "attn_res.attn_queries.{layer-1}"},
    {Role::depth_mlp_query, "attn_res.mlp_queries.{layer}"},
    {Role::ln2, "mlp_norm.weight"},
    {Role::choice_bias, "mlp.gate.bias"},
    {Role::expert_gate, "mlp.experts.w13_weight", Packing::experts_alternate},
    {Role::expert_up, "mlp.experts.w13_weight", Packing::experts_alternate},
    {Role::expert_down, "mlp.experts.w2_weight"},
};

// Heads, their widths and the reach of the distance logits, which windowed blocks have of their
// own.
void read_heads(const JsonKeys& keys, HfConfig& out) {
  ArchSpec& spec = out.spec;
  RelativeSpec& relative = spec.relative;
  const auto size = [&](const char* name, int fallback) {
    return static_cast<int>(keys.whole(name, 1, 1 << 20).value_or(fallback));
  };
  const int window = size("sliding_window_size", 0), extent = size("rel_extent", 0);
  const int kv_heads = spec.n_kv_heads, head_dim = spec.head_dim;
  const int window_kv_heads = size("swa_num_key_value_heads", kv_heads),
            window_head_dim = size("swa_head_dim", head_dim);
  relative.dim = size("d_rel", 0);
  relative.n_taps = size("conv_kernel_size", 0);
  if (kv_heads == 0 || head_dim == 0 || window == 0 || extent == 0 || relative.dim == 0 ||
      relative.n_taps == 0) {
    out.obstacles.push_back(
        "config.json lacks one of num_key_value_heads, head_dim, sliding_window_size, rel_extent, "
        "d_rel, conv_kernel_size");
    return;
  }
  if (size("swa_num_attention_heads", spec.n_heads) != spec.n_heads)
    out.obstacles.push_back(
        "windowed layers with another number of query heads (swa_num_attention_heads) are not "
        "supported");
  if (out.layer_types.empty())
    for (int layer = 0; layer < spec.n_layers; ++layer)
      if ((layer + 1) % 6 != 0) spec.window[static_cast<std::size_t>(layer)] = window;
  for (const int width : spec.window) {
    const bool is_windowed = width > 0;
    spec.layer_kv_heads.push_back(is_windowed ? window_kv_heads : kv_heads);
    spec.layer_head_dims.push_back(is_windowed ? window_head_dim : head_dim);
    relative.extents.push_back(is_windowed ? width : extent);
  }
  spec.n_kv_heads = std::max(kv_heads, window_kv_heads);
}

void read_inkling(const JsonKeys& keys, HfConfig& out) {
  ArchSpec& spec = out.spec;
  RelativeSpec& relative = spec.relative;
  MoeSpec& moe = spec.moe;
  read_heads(keys, out);
  const auto layers = static_cast<std::size_t>(spec.n_layers);
  spec.mixers.assign(layers, Mixer::relative);
  spec.sinks.assign(layers, true);
  spec.embed_norm = spec.sink_projection = spec.value_norm = true;
  spec.attn_gate = AttnGate::elementwise;
  spec.depth_block =
      static_cast<int>(keys.whole("n_layers_per_attn_res_block", 1, 1 << 20).value_or(6));
  relative.qk_limit = keys.number("qk_l2_clip_threshold").value_or(0);
  relative.r_limit = keys.number("rel_l2_clip_threshold").value_or(0);
  relative.growth = keys.number("log_scaling_alpha").value_or(0);
  relative.growth_floor = keys.number("log_scaling_n_floor").value_or(1);
  spec.logit_cap = keys.number("final_logit_softcapping").value_or(0);
  const auto unpadded = keys.whole("unpadded_vocab_size", 1, 1 << 26).value_or(spec.vocab_size);
  if (unpadded > spec.vocab_size)
    out.obstacles.push_back("unpadded_vocab_size is larger than vocab_size");
  else if (unpadded < spec.vocab_size)
    spec.n_logits = static_cast<int>(unpadded);
  read_experts(keys, {"n_routed_experts"}, {"num_experts_per_tok"}, "moe_intermediate_size", out);
  spec.d_mlp = 0;
  moe.score = RouterScore::sigmoid;
  moe.choice_bias = true;
  moe.scale = keys.number("route_scale").value_or(1);
  moe.gate_cap = keys.number("mlp_gate_softcap").value_or(0);
  moe.up_cap = keys.number("mlp_up_softcap").value_or(0);
  if (keys.text("scoring_func").value_or("sigmoid") != "sigmoid")
    out.obstacles.push_back("a scoring_func other than \"sigmoid\" is not supported");
}

constexpr Family kFamilies[] = {
    {.model_type = "inkling2_text",
     .has_rope = false,
     .full_type = "hybrid",
     .window_type = "hybrid_sliding",
     .window_key = "sliding_window_size",
     .names = kInkling,
     .prefix = "model.llm.",
     .read = read_inkling},
};

}  // namespace

std::span<const Family> inkling_families() { return kFamilies; }

}  // namespace sinkscope
