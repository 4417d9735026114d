// SPDX-License-Identifier: GPL-3.0-or-later
// DeepSeek-V3 and A.X K2: attention over latents (MLA), experts chosen by a sigmoid within groups.
#include <cmath>

#include "capture/checkpoint/families/families.h"

namespace sinkscope {
namespace {

constexpr TensorName kDeepseek[] = {
    {Role::q_a, "self_attn.q_a_proj.weight"},
    {Role::q_a_norm, "self_attn.q_a_layernorm.weight"},
    {Role::q, "self_attn.q_b_proj.weight"},
    {Role::q, "self_attn.q_proj.weight"},
    {Role::kv_a, "self_attn.kv_a_proj_with_mqa.weight"},
    {Role::kv_a_norm, "self_attn.kv_a_layernorm.weight"},
    {Role::k, "self_attn.kv_b_proj.weight", Packing::key_value_by_head},
    {Role::v, "self_attn.kv_b_proj.weight", Packing::key_value_by_head},
    {Role::shared_gate, "mlp.shared_experts.gate_proj.weight"},
    {Role::shared_up, "mlp.shared_experts.up_proj.weight"},
    {Role::shared_down, "mlp.shared_experts.down_proj.weight"},
};

constexpr TensorName kAxk2[] = {
    {Role::q_a, "self_attn.q_a_proj.weight"},
    {Role::q_a_norm, "self_attn.q_a_layernorm.weight"},
    {Role::q, "self_attn.q_b_proj.weight", Packing::query_gate_by_head},
    {Role::attn_gate, "self_attn.q_b_proj.weight", Packing::query_gate_by_head},
    {Role::kv_a, "self_attn.kv_a_proj_with_mqa.weight"},
    {Role::kv_a_norm, "self_attn.kv_a_layernorm.weight"},
    {Role::k, "self_attn.kv_b_proj.weight", Packing::key_value_by_head},
    {Role::v, "self_attn.kv_b_proj.weight", Packing::key_value_by_head},
    {Role::index_q, "self_attn.indexer.wq_b.weight"},
    {Role::index_k, "self_attn.indexer.wk.weight"},
    {Role::index_weights, "self_attn.indexer.weights_proj.weight"},
    {Role::index_k_norm, "self_attn.indexer.k_norm.weight"},
    {Role::index_k_norm_bias, "self_attn.indexer.k_norm.bias"},
    {Role::ln1, "input_layernorm.norm.weight"},
    {Role::ln1_gate_down, "input_layernorm.W_down.weight"},
    {Role::ln1_gate_up, "input_layernorm.W_up.weight"},
    {Role::ln2, "post_attention_layernorm.norm.weight"},
    {Role::ln2, "post_attention_layernorm.weight"},
    {Role::ln2_gate_down, "post_attention_layernorm.W_down.weight"},
    {Role::ln2_gate_up, "post_attention_layernorm.W_up.weight"},
    {Role::shared_gate, "mlp.shared_experts.gate_proj.weight"},
    {Role::shared_up, "mlp.shared_experts.up_proj.weight"},
    {Role::shared_down, "mlp.shared_experts.down_proj.weight"},
};

// A.X K2: gated norms, a gate on z that comes out of the query's latent, sparse selection.
void read_axk2(const JsonKeys& keys, HfConfig& out) {
  ArchSpec& spec = out.spec;
  read_latent(keys, out);
  read_grouped_experts(keys, out);
  spec.attn_gate = AttnGate::elementwise;
  spec.latent.query_sees_both = true;
  spec.moe.rejected_is_zero = true;
  spec.norm_gate_rank = static_cast<int>(keys.whole("gated_norm_rank", 1, 1 << 16).value_or(0));
  spec.index.n_heads = static_cast<int>(keys.whole("index_n_heads", 1, 1 << 16).value_or(0));
  spec.index.head_dim = static_cast<int>(keys.whole("index_head_dim", 1, 1 << 16).value_or(0));
  spec.index.top_k = static_cast<int>(keys.whole("index_topk", 1, 1 << 26).value_or(0));
  if (spec.latent.q_rank == 0 || spec.norm_gate_rank == 0 || spec.index.n_heads == 0 ||
      spec.index.head_dim < spec.latent.rope_dim || spec.index.top_k == 0)
    out.obstacles.push_back(
        "config.json lacks one of q_lora_rank, gated_norm_rank, index_n_heads, index_head_dim, "
        "index_topk");
}

// Kimi-Linear: delta attention with a decay for each channel, and latent attention without rope.
constexpr TensorName kKimi[] = {
    {Role::q, "self_attn.q_proj.weight"},
    {Role::kv_a, "self_attn.kv_a_proj_with_mqa.weight"},
    {Role::kv_a_norm, "self_attn.kv_a_layernorm.weight"},
    {Role::k, "self_attn.kv_b_proj.weight", Packing::key_value_by_head},
    {Role::v, "self_attn.kv_b_proj.weight", Packing::key_value_by_head},
    {Role::delta_q, "self_attn.q_proj.weight"},
    {Role::delta_k, "self_attn.k_proj.weight"},
    {Role::delta_v, "self_attn.v_proj.weight"},
    {Role::delta_gate, "self_attn.g_a_proj.weight"},
    {Role::delta_gate_up, "self_attn.g_b_proj.weight"},
    {Role::delta_beta, "self_attn.b_proj.weight"},
    {Role::delta_decay, "self_attn.f_a_proj.weight"},
    {Role::delta_decay_up, "self_attn.f_b_proj.weight"},
    {Role::delta_conv, "self_attn.{}_conv1d.weight", Packing::qkv_each},
    {Role::delta_log_rate, "self_attn.A_log", Packing::reshaped},
    {Role::delta_dt_bias, "self_attn.dt_bias"},
    {Role::delta_norm, "self_attn.o_norm.weight"},
    {Role::gate, "mlp.gate_proj.weight"},
    {Role::gate, "block_sparse_moe.gate_proj.weight"},
    {Role::up, "mlp.up_proj.weight"},
    {Role::up, "block_sparse_moe.up_proj.weight"},
    {Role::down, "mlp.down_proj.weight"},
    {Role::down, "block_sparse_moe.down_proj.weight"},
    {Role::router, "block_sparse_moe.gate.weight"},
    {Role::choice_bias, "block_sparse_moe.gate.e_score_correction_bias"},
    {Role::expert_gate, "block_sparse_moe.experts.{}.w1.weight", Packing::expert_each},
    {Role::expert_up, "block_sparse_moe.experts.{}.w3.weight", Packing::expert_each},
    {Role::expert_down, "block_sparse_moe.experts.{}.w2.weight", Packing::expert_each},
    {Role::shared_gate, "block_sparse_moe.shared_experts.gate_proj.weight"},
    {Role::shared_up, "block_sparse_moe.shared_experts.up_proj.weight"},
    {Role::shared_down, "block_sparse_moe.shared_experts.down_proj.weight"},
};

void read_kimi(const JsonKeys& keys, HfConfig& out) {
  ArchSpec& spec = out.spec;
  DeltaSpec& delta = spec.delta;
  const nlohmann::json* nested = keys.object("linear_attn_config");
  const nlohmann::json none = nlohmann::json::object();
  const JsonKeys linear(nested != nullptr ? *nested : none, "config.json", "linear_attn_config.");
  const auto size = [&](const char* name, const char* nested_name) {
    const auto own = keys.whole(name, 1, 1 << 16);
    return static_cast<int>(
        own.value_or(nested == nullptr ? 0 : linear.whole(nested_name, 1, 1 << 16).value_or(0)));
  };
  delta.n_key_heads = delta.n_value_heads = size("linear_num_heads", "num_heads");
  delta.key_dim = delta.value_dim = delta.narrow = size("linear_head_dim", "head_dim");
  delta.n_taps = size("linear_conv_kernel_dim", "short_conv_kernel_size");
  if (delta.n_key_heads == 0 || delta.key_dim == 0 || delta.n_taps == 0)
    out.obstacles.push_back("config.json does not say the sizes of linear attention");
  if (out.layer_types.empty() && nested != nullptr) {
    spec.mixers.assign(static_cast<std::size_t>(spec.n_layers), Mixer::latent);
    for (const double layer : linear.numbers("kda_layers").value_or(std::vector<double>()))
      if (layer >= 1 && layer <= spec.n_layers)  // counted from 1
        spec.mixers[static_cast<std::size_t>(layer) - 1] = Mixer::delta;
  }
  read_latent(keys, out);
  read_grouped_experts(keys, out);
}

void read_deepseek_v3(const JsonKeys& keys, HfConfig& out) {
  read_latent(keys, out);
  read_grouped_experts(keys, out);
  out.n_extra_layers = static_cast<int>(keys.whole("num_nextn_predict_layers", 0, 16).value_or(1));
}

constexpr Family kFamilies[] = {
    {.model_type = "deepseek_v3",
     .vocab_size = 129280,
     .d_mlp = 18432,
     .n_ctx = 4096,
     .bos_id = 0,
     .eos_id = 1,
     .names = kDeepseek,
     .read = read_deepseek_v3},
    {.model_type = "axk2",
     .vocab_size = 163840,
     .d_mlp = 10944,
     .n_ctx = 131072,
     .full_type = "indexed_attention",
     .names = kAxk2,
     .read = read_axk2},
    {.model_type = "kimi_linear",
     .vocab_size = 163840,
     .d_mlp = 9216,
     .n_ctx = 1048576,
     .has_rope = false,
     .has_delta = true,
     .names = kKimi,
     .read = read_kimi},
};

}  // namespace

double latent_scale(const ArchSpec& spec) {
  double growth = 1;
  const RopeSpec& rope = spec.rope;
  if (rope.scaling == RopeScaling::yarn && rope.mscale_all_dim.value_or(0) != 0 && rope.factor > 1)
    growth = 0.1 * *rope.mscale_all_dim * std::log(rope.factor) + 1;
  return growth * growth / std::sqrt(std::max(spec.head_dim, 1));
}

void read_latent(const JsonKeys& keys, HfConfig& out) {
  ArchSpec& spec = out.spec;
  LatentSpec& latent = spec.latent;
  const auto size = [&](const char* name) {
    return static_cast<int>(keys.whole(name, 1, 1 << 20).value_or(0));
  };
  latent.q_rank = size("q_lora_rank");
  latent.kv_rank = size("kv_lora_rank");
  latent.nope_dim = size("qk_nope_head_dim");
  latent.rope_dim = size("qk_rope_head_dim");
  latent.rope_in_pairs = keys.boolean("rope_interleave").value_or(true);
  spec.value_dim = size("v_head_dim");
  spec.head_dim = latent.nope_dim + latent.rope_dim;
  spec.n_kv_heads = spec.n_heads;
  if (latent.kv_rank == 0 || latent.nope_dim == 0 || latent.rope_dim == 0 || spec.value_dim == 0) {
    out.obstacles.push_back(
        "config.json lacks one of kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim, v_head_dim");
    latent.kv_rank = std::max(latent.kv_rank, 1);
  }
  spec.mixers.resize(static_cast<std::size_t>(spec.n_layers), Mixer::latent);
  for (Mixer& mixer : spec.mixers)
    if (mixer != Mixer::delta) mixer = Mixer::latent;
  if (keys.boolean("attention_bias").value_or(false))
    out.obstacles.push_back("attention_bias in latent attention is not supported");
  spec.attention_scale = latent_scale(spec);
}

void read_grouped_experts(const JsonKeys& keys, HfConfig& out) {
  ArchSpec& spec = out.spec;
  read_experts(keys, {"n_routed_experts", "num_experts"},
               {"num_experts_per_tok", "num_experts_per_token"}, "moe_intermediate_size", out);
  MoeSpec& moe = spec.moe;
  moe.score = RouterScore::sigmoid;
  moe.choice_bias = true;
  moe.renormalize =
      keys.boolean("norm_topk_prob").value_or(keys.boolean("moe_renormalize").value_or(true));
  moe.scale = keys.number("routed_scaling_factor").value_or(1);
  moe.n_groups =
      static_cast<int>(keys.whole("n_group", 1, 1 << 16)
                           .value_or(keys.whole("num_expert_group", 1, 1 << 16).value_or(1)));
  moe.n_groups_used = static_cast<int>(keys.whole("topk_group", 1, 1 << 16).value_or(moe.n_groups));
  if (moe.n_experts % moe.n_groups != 0)
    out.obstacles.push_back("the experts do not divide into n_group groups");
  const auto shared = keys.whole("n_shared_experts", 0, 1 << 16)
                          .value_or(keys.whole("num_shared_experts", 0, 1 << 16).value_or(0));
  moe.d_shared = static_cast<int>(std::min<std::int64_t>(shared * moe.d_expert, 1 << 27));
  const std::int64_t first = keys.whole("first_k_dense_replace", 0, 1 << 20).value_or(0);
  const std::int64_t every = keys.whole("moe_layer_freq", 1, 1 << 20).value_or(1);
  const auto types = keys.texts("mlp_layer_types");
  if (types && static_cast<int>(types->size()) != spec.n_layers) {
    out.obstacles.push_back("mlp_layer_types does not name every layer");
    return;
  }
  for (int layer = 0; layer < spec.n_layers; ++layer) {
    const auto at = static_cast<std::size_t>(layer);
    spec.moe_layers[at] = types ? (*types)[at] == "sparse" : layer >= first && layer % every == 0;
  }
}

std::span<const Family> deepseek_families() { return kFamilies; }

}  // namespace sinkscope
