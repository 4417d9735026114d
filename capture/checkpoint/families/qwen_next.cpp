// SPDX-License-Identifier: GPL-3.0-or-later
// Qwen3-Next, Qwen3.5 and Qwen4-Exp: gated delta-nets and gated attention in turns, norms 1 + w,
// experts with a gated shared one or a dense MLP; in Qwen4-Exp several streams, embeddings of
// hashed n-grams, and attention that chooses blocks of keys.
#include <algorithm>

#include "capture/checkpoint/families/families.h"

namespace sinkscope {
namespace {

constexpr TensorName kNext[] = {
    {Role::q, "self_attn.q_proj.weight", Packing::query_gate_by_head},
    {Role::q_bias, "self_attn.q_proj.bias", Packing::query_gate_by_head},
    {Role::attn_gate, "self_attn.q_proj.weight", Packing::query_gate_by_head},
    {Role::attn_gate_bias, "self_attn.q_proj.bias", Packing::query_gate_by_head},
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
    // Qwen4-Exp
    {Role::mix_final_norm, "hyper_connection_mixer.hc_norm.weight"},
    {Role::mix_final_down, "hyper_connection_mixer.input_mix_weight_down.weight"},
    {Role::mix_final_up, "hyper_connection_mixer.input_mix_weight_up.weight"},
    {Role::mix1_norm, "attn_hyper_connection.hc_norm.weight"},
    {Role::mix1_down, "attn_hyper_connection.input_mix_weight_down.weight"},
    {Role::mix1_up, "attn_hyper_connection.input_mix_weight_up.weight"},
    {Role::mix1_inject, "attn_hyper_connection.block_inject_weight.weight"},
    {Role::mix2_norm, "mlp_hyper_connection.hc_norm.weight"},
    {Role::mix2_down, "mlp_hyper_connection.input_mix_weight_down.weight"},
    {Role::mix2_up, "mlp_hyper_connection.input_mix_weight_up.weight"},
    {Role::mix2_inject, "mlp_hyper_connection.block_inject_weight.weight"},
    {Role::ngram_multipliers, "ple.ple_embedding.layer_multipliers"},
    {Role::ngram_sizes, "ple.ple_embedding.ngram_heads_vocab_sizes"},
    {Role::ngram_offsets, "ple.ple_embedding.ngram_heads_offsets"},
    {Role::ngram_table, "ple.ple_embedding.ngram_embedding.shard_{}.weight", Packing::shards},
    {Role::ngram_key, "ple.key_proj.weight"},
    {Role::ngram_value, "ple.value_proj.weight"},
    {Role::ngram_key_norm, "ple.norm_key.weight"},
    {Role::ngram_query_norm, "ple.norm_query.weight"},
    {Role::ngram_conv_norm, "ple.norm_conv.weight"},
    {Role::ngram_conv, "ple.conv1d.weight", Packing::reshaped},
    {Role::index_q, "self_attn.indexer.index_qk_proj.weight", Packing::index_rows},
    {Role::index_k, "self_attn.indexer.index_qk_proj.weight", Packing::index_rows},
    {Role::index_q_norm, "self_attn.indexer.q_layernorm.weight"},
    {Role::index_k_norm, "self_attn.indexer.k_layernorm.weight"},
};

void read_mixers(const JsonKeys& keys, HfConfig& out) {
  ArchSpec& spec = out.spec;
  spec.qk_norm = QkNorm::per_head;
  spec.attn_gate = AttnGate::elementwise;
  read_attention_bias(keys, out);
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

// The streams and what is added to them in front of some layers.
void read_streams(const JsonKeys& keys, HfConfig& out) {
  ArchSpec& spec = out.spec;
  const auto size = [&](const char* name, int fallback) {
    return static_cast<int>(keys.whole(name, 1, 1 << 26).value_or(fallback));
  };
  spec.streams = {size("hc_count", 4), StreamMix::gated, size("hc_lowrank", 320), 0, 0};
  if (spec.streams.n < 2) out.obstacles.push_back("hc_count is 1: expected several streams");
  const auto layers = keys.numbers("ple_layer_ids");
  if (!layers || layers->empty()) return;
  spec.ngram = {size("ple_embed_dim", spec.d_model), size("ngram_size", 3),
                size("heads_per_ngram", 8), size("ple_conv_kernel_size", 4),
                size("split_ngram_parts", 512)};
  spec.ngram_layers.assign(static_cast<std::size_t>(spec.n_layers), false);
  for (const double id : *layers) {  // counted from 1
    if (id < 1 || id > spec.n_layers)
      out.obstacles.push_back("ple_layer_ids names a layer that does not exist");
    else
      spec.ngram_layers[static_cast<std::size_t>(id) - 1] = true;
  }
  if (spec.eos_id < 0)
    out.obstacles.push_back("ple_layer_ids need an eos_token_id, at which n-grams end");
}

void read_qwen4(const JsonKeys& keys, HfConfig& out) {
  ArchSpec& spec = out.spec;
  read_mixers(keys, out);
  read_shared_experts(keys, out);
  spec.has_ln1 = spec.has_ln2 = spec.has_final_norm = false;  // the mixes have them
  const std::string gate = keys.text("output_gate_type").value_or("silu");
  spec.delta_sigmoid = gate == "sigmoid";
  if (gate != "sigmoid" && gate != "silu")
    out.obstacles.push_back("output_gate_type is neither sigmoid nor silu");
  read_streams(keys, out);
  IndexSpec& index = spec.index;
  index.n_heads = static_cast<int>(keys.whole("indexer_n_heads", 1, 1 << 14).value_or(0));
  if (index.n_heads == 0) return;
  index.head_dim = static_cast<int>(keys.whole("indexer_head_dim", 1, 1 << 16).value_or(0));
  index.block = static_cast<int>(keys.whole("indexer_compress_ratio", 1, 1 << 26).value_or(0));
  const auto budget = static_cast<int>(keys.whole("indexer_budget", 1, 1 << 26).value_or(0));
  index.top_k = budget / std::max(index.block, 1);
  if (index.head_dim == 0 || index.block == 0 || index.top_k == 0 ||
      keys.whole("indexer_kv_heads", 1, 1 << 14).value_or(1) != 1)
    out.obstacles.push_back(
        "config.json: expected indexer_head_dim, indexer_compress_ratio and an indexer_budget of "
        "at least one block, with one key head");
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
    {.model_type = "qwen4_exp_text",
     .vocab_size = 248320,
     .n_ctx = 32768,
     .has_delta = true,
     .full_type = "indexed_attention",
     .names = kNext,
     .read = read_qwen4},
};

}  // namespace

std::span<const Family> qwen_next_families() { return kFamilies; }

}  // namespace sinkscope
