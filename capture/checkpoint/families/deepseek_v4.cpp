// SPDX-License-Identifier: GPL-3.0-or-later
// DeepSeek-V4: several residual streams, one head that is key and value of all, compressed keys
// beside a window, experts by a sigmoid's kin or by a table of tokens.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "capture/checkpoint/families/families.h"
#include "capture/checkpoint/hf_rope.h"

namespace sinkscope {
namespace {

constexpr TensorName kNames[] = {
    {Role::embed, "embed_tokens.weight"},
    {Role::embed, "embed.weight"},
    {Role::unembed, "head.weight"},
    {Role::unembed, "lm_head.weight"},
    {Role::mix_final_factors, "hc_head.hc_fn"},
    {Role::mix_final_factors, "hc_head_fn"},
    {Role::mix_final_base, "hc_head.hc_base"},
    {Role::mix_final_base, "hc_head_base"},
    {Role::mix_final_scale, "hc_head.hc_scale"},
    {Role::mix_final_scale, "hc_head_scale"},
    {Role::mix1_factors, "hc_attn_fn"},
    {Role::mix1_base, "hc_attn_base"},
    {Role::mix1_scale, "hc_attn_scale"},
    {Role::mix2_factors, "hc_ffn_fn"},
    {Role::mix2_base, "hc_ffn_base"},
    {Role::mix2_scale, "hc_ffn_scale"},
    {Role::ln1, "attn_norm.weight"},
    {Role::ln2, "ffn_norm.weight"},
    {Role::q_a, "attn.wq_a.weight"},
    {Role::q_a_norm, "attn.q_norm.weight"},
    {Role::q, "attn.wq_b.weight"},
    {Role::k, "attn.wkv.weight"},
    {Role::k_norm, "attn.kv_norm.weight"},
    {Role::k_norm, "attn.norm.weight"},
    {Role::o_down, "attn.wo_a.weight"},
    {Role::o, "attn.wo_b.weight"},
    {Role::sink, "attn.attn_sink"},
    {Role::compress_kv, "attn.compressor.wkv.weight"},
    {Role::compress_gate, "attn.compressor.wgate.weight"},
    {Role::compress_place, "attn.compressor.ape"},
    {Role::compress_norm, "attn.compressor.norm.weight"},
    {Role::index_q, "attn.indexer.wq_b.weight"},
    {Role::index_weights, "attn.indexer.weights_proj.weight"},
    {Role::index_kv, "attn.indexer.compressor.wkv.weight"},
    {Role::index_gate, "attn.indexer.compressor.wgate.weight"},
    {Role::index_place, "attn.indexer.compressor.ape"},
    {Role::index_kv_norm, "attn.indexer.compressor.norm.weight"},
    {Role::router, "ffn.gate.weight"},
    {Role::choice_bias, "ffn.gate.bias"},
    {Role::route_table, "ffn.gate.tid2eid"},
    {Role::expert_gate, "ffn.experts.{}.w1.weight", Packing::expert_each},
    {Role::expert_up, "ffn.experts.{}.w3.weight", Packing::expert_each},
    {Role::expert_down, "ffn.experts.{}.w2.weight", Packing::expert_each},
    {Role::shared_gate, "ffn.shared_experts.w1.weight"},
    {Role::shared_up, "ffn.shared_experts.w3.weight"},
    {Role::shared_down, "ffn.shared_experts.w2.weight"},
};

constexpr const char* kSparse = "compressed_sparse_attention";
constexpr const char* kHeavy = "heavily_compressed_attention";

// What each layer attends to, beside its window.
std::vector<std::string> layer_kinds(const JsonKeys& keys, const HfConfig& out) {
  if (!out.layer_types.empty()) return out.layer_types;
  std::vector<std::string> kinds;
  const auto ratios = keys.numbers("compress_ratios");  // of old files
  for (int layer = 0; layer < out.spec.n_layers; ++layer) {
    const auto at = static_cast<std::size_t>(layer);
    if (ratios && at < ratios->size())
      kinds.emplace_back((*ratios)[at] == 0     ? "sliding_attention"
                         : (*ratios)[at] == 4   ? kSparse
                         : (*ratios)[at] == 128 ? kHeavy
                                                : "compress_ratios other than 0, 4 and 128");
    else
      kinds.emplace_back(layer >= 2 && layer % 2 == 1 ? kSparse : kHeavy);
  }
  return kinds;
}

void read_layers(const JsonKeys& keys, HfConfig& out) {
  ArchSpec& spec = out.spec;
  const auto n = static_cast<std::size_t>(spec.n_layers);
  const nlohmann::json* rates = keys.object("compress_rates");
  const nlohmann::json none = nlohmann::json::object();
  const JsonKeys given(rates != nullptr ? *rates : none, "config.json", "compress_rates.");
  const auto rate = [&](const char* kind, const char* old, std::int64_t fallback) {
    return static_cast<int>(
        given.whole(kind, 2, 1 << 26).value_or(keys.whole(old, 2, 1 << 26).value_or(fallback)));
  };
  const int sparse = rate(kSparse, "compress_rate_csa", 4);
  const int heavy = rate(kHeavy, "compress_rate_hca", 128);
  const std::vector<std::string> kinds = layer_kinds(keys, out);
  spec.mixers.assign(n, Mixer::shared);
  spec.sinks.assign(n, true);
  spec.window.assign(n, static_cast<int>(keys.whole("sliding_window", 1, 1 << 26).value_or(128)));
  spec.compress.assign(n, 0);
  spec.compress_pairs.assign(n, false);
  for (std::size_t layer = 0; layer < n; ++layer) {
    if (kinds[layer] == kSparse || kinds[layer] == kHeavy) {
      spec.compress_pairs[layer] = kinds[layer] == kSparse;
      spec.compress[layer] = kinds[layer] == kSparse ? sparse : heavy;
    } else if (kinds[layer] != "sliding_attention") {
      out.obstacles.push_back("layer type \"" + kinds[layer] + "\" is not supported");
      return;
    }
  }
}

// Layers with compressed keys have rotary positions of their own, by yarn without its factor.
void read_ropes(const JsonKeys& keys, HfConfig& out) {
  ArchSpec& spec = out.spec;
  const nlohmann::json* rope = keys.object("rope_parameters");
  if (rope == nullptr) rope = keys.object("rope_scaling");
  const nlohmann::json none = nlohmann::json::object();
  const JsonKeys flat(rope != nullptr ? *rope : none, "config.json", "rope_parameters.");
  const nlohmann::json *own_main = flat.object("main"), *own_compress = flat.object("compress");
  const bool is_nested = own_main != nullptr && own_compress != nullptr;
  RopeSpec main, compress;
  main.theta = keys.number("rope_theta").value_or(10000);
  compress.theta = keys.number("compress_rope_theta").value_or(160000);
  if (is_nested) {
    read_rope(JsonKeys(*own_main, "config.json", "rope_parameters.main."), keys, main, out);
    read_rope(JsonKeys(*own_compress, "config.json", "rope_parameters.compress."), keys, compress,
              out);
  } else {
    const double theta = compress.theta;
    read_rope(flat, keys, compress, out);
    compress.theta = theta;
  }
  if (compress.scaling == RopeScaling::yarn && !compress.attention_factor)
    compress.attention_factor = 1;
  main.rotary_dim = compress.rotary_dim = spec.latent.rope_dim;
  spec.rope = main;
  for (const int m : spec.compress) spec.layer_ropes.push_back(m > 0 ? compress : main);
}

void read_moe(const JsonKeys& keys, HfConfig& out) {
  ArchSpec& spec = out.spec;
  read_grouped_experts(keys, out);
  MoeSpec& moe = spec.moe;
  const std::string score = keys.text("scoring_func").value_or("sqrtsoftplus");
  moe.score = score == "sigmoid" ? RouterScore::sigmoid : RouterScore::sqrt_softplus;
  if (score != "sigmoid" && score != "sqrtsoftplus")
    out.obstacles.push_back("scoring_func is neither sqrtsoftplus nor sigmoid");
  moe.scale = keys.number("routed_scaling_factor").value_or(1.5);
  moe.clamp = keys.number("swiglu_limit").value_or(10);
  moe.up_shift = 0;
  const auto n = static_cast<std::size_t>(spec.n_layers);
  const auto types = keys.texts("mlp_layer_types");
  const std::int64_t n_tables = keys.whole("num_hash_layers", 0, 1 << 20).value_or(3);
  spec.moe_layers.assign(n, true);
  spec.table_layers.assign(n, false);
  for (std::size_t layer = 0; layer < n; ++layer)
    spec.table_layers[layer] =
        types ? types->at(layer) == "hash_moe" : static_cast<std::int64_t>(layer) < n_tables;
}

void read_deepseek_v4(const JsonKeys& keys, HfConfig& out) {
  ArchSpec& spec = out.spec;
  const auto size = [&](const char* name, int fallback) {
    return static_cast<int>(keys.whole(name, 1, 1 << 26).value_or(fallback));
  };
  spec.streams = {size("hc_mult", 4), StreamMix::balanced, 0, size("hc_sinkhorn_iters", 20),
                  keys.number("hc_eps").value_or(1e-6)};
  if (spec.streams.n < 2) out.obstacles.push_back("hc_mult is 1: expected several streams");
  if (spec.head_dim == 0) spec.head_dim = 512;
  spec.n_kv_heads = 1;
  LatentSpec& latent = spec.latent;
  latent.q_rank = size("q_lora_rank", 1024);
  const double part = keys.number("partial_rotary_factor").value_or(0.125);
  latent.rope_dim = std::min(
      size("qk_rope_head_dim", std::max(1, static_cast<int>(std::lround(part * spec.head_dim)))),
      spec.head_dim);
  latent.nope_dim = spec.head_dim - latent.rope_dim;
  spec.o_groups = size("o_groups", 8);
  spec.o_rank = size("o_lora_rank", 1024);
  spec.index = {size("index_n_heads", 64), size("index_head_dim", 128), size("index_topk", 512), 0};
  if (spec.index.head_dim < latent.rope_dim)
    out.obstacles.push_back("index_head_dim is smaller than the rotary dims of a head");
  if (keys.boolean("attention_bias").value_or(false) || keys.boolean("mlp_bias").value_or(false))
    out.obstacles.push_back("biases are not supported in this family");
  read_layers(keys, out);
  read_ropes(keys, out);
  read_moe(keys, out);
  out.n_extra_layers = static_cast<int>(keys.whole("num_nextn_predict_layers", 0, 16).value_or(1));
}

constexpr Family kFamilies[] = {
    {.model_type = "deepseek_v4",
     .vocab_size = 129280,
     .n_ctx = 1048576,
     .bos_id = 0,
     .eos_id = 1,
     .has_rope = false,
     .has_own_types = true,
     .names = kNames,
     .read = read_deepseek_v4},
};

}  // namespace

std::span<const Family> deepseek_v4_families() { return kFamilies; }

}  // namespace sinkscope
