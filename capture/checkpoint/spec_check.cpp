// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/spec_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace sinkscope {

std::string wrong_rope_base(double theta) {
  constexpr double kLeast = 1, kMost = 1e15;
  if (theta >= kLeast && theta <= kMost) return "";
  return fmt::format("{}, expected {} to {}", theta, kLeast, kMost);
}

namespace {

constexpr std::int64_t kMostLayers = 1024, kMostHeads = 1 << 14, kMostDims = 1 << 16,
                       kMostExperts = 1 << 16, kMostSize = 1 << 26, kMostProduct = 1 << 30;

struct Bound {
  const char* name;
  std::int64_t value, least, most;
};

std::string out_of_bounds(std::initializer_list<Bound> bounds) {
  for (const Bound& bound : bounds)
    if (bound.value < bound.least || bound.value > bound.most)
      return fmt::format("{} is {}, expected {} to {}", bound.name, bound.value, bound.least,
                         bound.most);
  return "";
}

bool has(const ArchSpec& spec, Mixer mixer) {
  return std::find(spec.mixers.begin(), spec.mixers.end(), mixer) != spec.mixers.end();
}

std::string wrong_sources(const ArchSpec& spec) {
  for (int layer = 0; layer < spec.n_layers && !spec.kv_source.empty(); ++layer) {
    const int source = spec.kv_source[static_cast<std::size_t>(layer)];
    if (source < 0 || source > layer || spec.source_of(source) != source ||
        spec.head_dim_of(source) != spec.head_dim_of(layer) ||
        spec.kv_heads(source) != spec.kv_heads(layer) || spec.mixer(source) != spec.mixer(layer))
      return fmt::format(
          "kv_source of layer {} is {}, expected itself or an "
          "earlier layer with "
          "keys of its own and the same heads",
          layer, source);
  }
  return "";
}

std::string wrong_list(const ArchSpec& spec) {
  const std::array<std::pair<const char*, std::size_t>, 14> lists = {
      {{"window", spec.window.size()},
       {"layer_kv_heads", spec.layer_kv_heads.size()},
       {"layer_head_dims", spec.layer_head_dims.size()},
       {"layer_mlps", spec.layer_mlps.size()},
       {"keys_as_values", spec.keys_as_values.size()},
       {"kv_source", spec.kv_source.size()},
       {"mixers", spec.mixers.size()},
       {"sinks", spec.sinks.size()},
       {"layer_ropes", spec.layer_ropes.size()},
       {"ngram_layers", spec.ngram_layers.size()},
       {"compress", spec.compress.size()},
       {"compress_pairs", spec.compress_pairs.size()},
       {"table_layers", spec.table_layers.size()},
       {"moe_layers", spec.moe_layers.size()}}};
  for (const auto& [name, size] : lists)
    if (size != 0 && size != static_cast<std::size_t>(spec.n_layers))
      return fmt::format("{} has {} entries for {} layers", name, size, spec.n_layers);
  if (spec.window.empty()) return "window has no entries";
  for (const int width : spec.window)
    if (width < 0) return fmt::format("a window is {}, expected 0 or more", width);
  for (const int heads : spec.layer_kv_heads)
    if (heads < 1 || spec.n_heads % heads != 0)
      return fmt::format("n_heads {} is not a multiple of layer_kv_heads {}", spec.n_heads, heads);
  for (const int dim : spec.layer_head_dims)
    if (dim < 1 || dim > kMostDims) return fmt::format("layer_head_dims holds {}", dim);
  for (const int width : spec.layer_mlps)
    if (width < 1 || width > kMostSize) return fmt::format("layer_mlps holds {}", width);
  return wrong_sources(spec);
}

std::string wrong_experts(const ArchSpec& spec) {
  const MoeSpec& moe = spec.moe;
  if (moe.n_experts == 0) return "";
  if (spec.moe_layers.empty()) return "moe_layers is missing";
  if (std::string wrong =
          out_of_bounds({{"moe.n_experts", moe.n_experts, 1, kMostExperts},
                         {"moe.n_used", moe.n_used, 1, moe.n_experts},
                         {"moe.d_expert", moe.d_expert, 1, kMostSize},
                         {"moe.d_shared", moe.d_shared, 0, kMostSize},
                         {"moe.n_groups", moe.n_groups, 1, moe.n_experts},
                         {"moe.n_groups_used", moe.n_groups_used, 1, moe.n_groups}});
      !wrong.empty())
    return wrong;
  if (moe.n_experts % moe.n_groups != 0)
    return fmt::format("moe.n_experts {} do not divide into moe.n_groups {}", moe.n_experts,
                       moe.n_groups);
  return "";
}

std::string wrong_delta(const DeltaSpec& delta) {
  if (std::string wrong =
          out_of_bounds({{"delta.n_key_heads", delta.n_key_heads, 1, kMostHeads},
                         {"delta.n_value_heads", delta.n_value_heads, 1, kMostHeads},
                         {"delta.key_dim", delta.key_dim, 1, kMostDims},
                         {"delta.value_dim", delta.value_dim, 1, kMostDims},
                         {"delta.n_taps", delta.n_taps, 1, kMostDims},
                         {"delta.narrow", delta.narrow, 0, kMostDims}});
      !wrong.empty())
    return wrong;
  if (delta.n_value_heads % delta.n_key_heads != 0)
    return fmt::format("delta.n_value_heads {} is not a multiple of delta.n_key_heads {}",
                       delta.n_value_heads, delta.n_key_heads);
  const std::int64_t channels = std::int64_t{2} * delta.n_key_heads * delta.key_dim +
                                std::int64_t{1} * delta.n_value_heads * delta.value_dim;
  return out_of_bounds({{"the number of delta channels", channels, 1, kMostProduct}});
}

std::string wrong_latent(const ArchSpec& spec) {
  const LatentSpec& latent = spec.latent;
  if (std::string wrong = out_of_bounds({{"latent.q_rank", latent.q_rank, 0, kMostSize},
                                         {"latent.kv_rank", latent.kv_rank, 1, kMostSize},
                                         {"latent.nope_dim", latent.nope_dim, 1, kMostDims},
                                         {"latent.rope_dim", latent.rope_dim, 0, kMostDims}});
      !wrong.empty())
    return wrong;
  if (spec.head_dim != latent.nope_dim + latent.rope_dim)
    return fmt::format("head_dim {} is not latent.nope_dim {} + latent.rope_dim {}", spec.head_dim,
                       latent.nope_dim, latent.rope_dim);
  return "";
}

std::string wrong_relative(const ArchSpec& spec) {
  const RelativeSpec& relative = spec.relative;
  if (std::string wrong = out_of_bounds({{"relative.dim", relative.dim, 1, kMostDims},
                                         {"relative.n_taps", relative.n_taps, 1, kMostDims}});
      !wrong.empty())
    return wrong;
  if (relative.extents.size() != static_cast<std::size_t>(spec.n_layers))
    return fmt::format("relative.extents has {} entries for {} layers", relative.extents.size(),
                       spec.n_layers);
  for (const int extent : relative.extents)
    if (extent < 1 || extent > kMostSize) return fmt::format("relative.extents holds {}", extent);
  if (!(relative.growth_floor > 0))
    return fmt::format("relative.growth_floor is {}", relative.growth_floor);
  if (spec.norm_bias || spec.qkv_bias || spec.o_bias || spec.qk_norm != QkNorm::none ||
      !spec.kv_source.empty() || !spec.keys_as_values.empty() || spec.query_growth != 0)
    return "relative layers have no biases, q/k norms, shared keys or query_growth";
  return "";
}

std::string wrong_depth(const ArchSpec& spec) {
  if (spec.depth_block < 0) return fmt::format("depth_block is {}", spec.depth_block);
  if (spec.depth_block > 0 && (spec.parallel || spec.post_norm || !spec.has_ln1 || !spec.has_ln2))
    return "depth_block needs blocks that are not parallel, with norms before both halves";
  if (spec.n_logits < 0 || spec.n_logits > spec.vocab_size)
    return fmt::format("n_logits is {}, expected 0 to vocab_size {}", spec.n_logits,
                       spec.vocab_size);
  if (spec.sink_projection && !has(spec, Mixer::relative))
    return "sink_projection needs relative layers";
  return "";
}

std::string wrong_streams(const ArchSpec& spec) {
  const StreamSpec& streams = spec.streams;
  const NgramSpec& ngram = spec.ngram;
  const bool is_gated = spec.has_streams() && streams.mix == StreamMix::gated;
  std::string wrong = out_of_bounds({{"streams.n", streams.n, 1, 64},
                                     {"streams.rank", streams.rank, is_gated ? 1 : 0, kMostDims},
                                     {"streams.n_rounds", streams.n_rounds, 0, 1000}});
  if (wrong.empty() && spec.state_width() > kMostSize) wrong = "the streams are too wide together";
  if (wrong.empty() && !(streams.eps >= 0)) wrong = fmt::format("streams.eps is {}", streams.eps);
  if (wrong.empty() && spec.has_streams() &&
      (spec.parallel || spec.post_norm || spec.pre_affine || spec.residual_scale != 1 ||
       spec.layer_scale || spec.d_per_layer > 0 || spec.moe.beside_dense))
    wrong =
        "several streams do not go with parallel, post_norm, pre_affine, residual_scale, "
        "layer_scale, d_per_layer or moe.beside_dense";
  if (!wrong.empty() || spec.ngram_layers.empty()) return wrong;
  if (!is_gated) return "ngram_layers need streams of the mix gated";
  wrong = out_of_bounds({{"ngram.width", ngram.width, 1, kMostSize},
                         {"ngram.longest", ngram.longest, 2, 64},
                         {"ngram.n_heads", ngram.n_heads, 1, kMostDims},
                         {"ngram.n_taps", ngram.n_taps, 1, kMostDims},
                         {"ngram.n_shards", ngram.n_shards, 1, kMostDims}});
  if (wrong.empty() && ngram.width % ngram.n_hashes() != 0)
    wrong =
        fmt::format("ngram.width {} does not divide into {} hashes", ngram.width, ngram.n_hashes());
  return wrong;
}

// One head that is key and value, compressed entries, an output in groups.
std::string wrong_shared(const ArchSpec& spec) {
  const bool is_shared = has(spec, Mixer::shared);
  const LatentSpec& latent = spec.latent;
  if (!is_shared)
    return spec.compress.empty() && spec.o_rank == 0 ? ""
                                                     : "compress and o_rank need shared layers";
  for (const int m : spec.compress)
    if (m < 0 || m > kMostSize) return fmt::format("compress holds {}", m);
  for (int layer = 0; layer < spec.n_layers; ++layer)
    if (spec.compresses_pairs(layer) && (spec.compress_of(layer) == 0 || spec.index.n_heads == 0))
      return "compress_pairs needs compress, and an index";
  if (std::string wrong = out_of_bounds({{"latent.q_rank", latent.q_rank, 1, kMostSize},
                                         {"latent.nope_dim", latent.nope_dim, 0, kMostDims},
                                         {"latent.rope_dim", latent.rope_dim, 2, kMostDims},
                                         {"o_groups", spec.o_groups, 1, spec.n_heads},
                                         {"o_rank", spec.o_rank, 1, kMostSize}});
      !wrong.empty())
    return wrong;
  if (spec.head_dim != latent.nope_dim + latent.rope_dim || spec.n_kv_heads != 1 ||
      spec.z_width() % spec.o_groups != 0)
    return "shared layers need one key head of latent.nope_dim + latent.rope_dim, and heads that "
           "divide into o_groups";
  if (spec.n_heads % spec.o_groups != 0 || spec.qkv_bias || spec.gate_dim() > 0 ||
      spec.bidirectional || spec.qk_norm != QkNorm::none)
    return "shared layers have no biases, gates or q/k norms, and heads divide into o_groups";
  return "";
}

std::string wrong_rope(const RopeSpec& rope) {
  if (const std::string wrong = wrong_rope_base(rope.theta); !wrong.empty())
    return "rope.theta is " + wrong;
  if (!(rope.factor > 0)) return fmt::format("rope.factor is {}", rope.factor);
  if (rope.original_context < 0)
    return fmt::format("rope.original_context is {}", rope.original_context);
  return "";
}

}  // namespace

std::string contradiction(const ArchSpec& spec) {
  const bool is_latent = has(spec, Mixer::latent);
  const IndexSpec& index = spec.index;
  std::string wrong = out_of_bounds({{"n_layers", spec.n_layers, 1, kMostLayers},
                                     {"n_heads", spec.n_heads, 1, kMostHeads},
                                     {"n_kv_heads", spec.n_kv_heads, 1, kMostHeads},
                                     {"head_dim", spec.head_dim, 1, kMostDims},
                                     {"value_dim", spec.value_dim, 0, kMostDims},
                                     {"d_model", spec.d_model, 1, kMostSize},
                                     {"d_mlp", spec.d_mlp, 0, kMostSize},
                                     {"vocab_size", spec.vocab_size, 1, kMostSize},
                                     {"n_ctx", spec.n_ctx, 1, kMostSize},
                                     {"position_offset", spec.position_offset, 0, kMostSize},
                                     {"n_types", spec.n_types, 0, kMostSize},
                                     {"d_per_layer", spec.d_per_layer, 0, kMostSize},
                                     {"norm_gate_rank", spec.norm_gate_rank, 0, kMostSize},
                                     {"index.n_heads", index.n_heads, 0, kMostHeads},
                                     {"index.head_dim", index.head_dim, 0, kMostDims},
                                     {"index.block", index.block, 0, kMostSize},
                                     {"index.top_k", index.top_k, 0, kMostSize}});
  if (wrong.empty() && spec.n_heads % spec.n_kv_heads != 0)
    wrong =
        fmt::format("n_heads {} is not a multiple of n_kv_heads {}", spec.n_heads, spec.n_kv_heads);
  if (wrong.empty()) wrong = wrong_list(spec);
  if (wrong.empty()) wrong = wrong_experts(spec);
  if (wrong.empty() && has(spec, Mixer::delta)) wrong = wrong_delta(spec.delta);
  if (wrong.empty() && is_latent) wrong = wrong_latent(spec);
  if (wrong.empty() && has(spec, Mixer::relative)) wrong = wrong_relative(spec);
  if (wrong.empty()) wrong = wrong_depth(spec);
  if (wrong.empty() && !is_latent && spec.latent.kv_rank != 0)
    wrong = "latent.kv_rank is given, and no layer of mixers is latent";
  if (wrong.empty() && spec.post_norm &&
      (!spec.has_ln1_post || !spec.has_ln2_post || spec.parallel))
    wrong =
        "post_norm needs has_ln1_post and has_ln2_post, and blocks that "
        "are not parallel";
  if (wrong.empty() && spec.bidirectional &&
      (is_latent || has(spec, Mixer::delta) || has(spec, Mixer::relative)))
    wrong = "bidirectional needs plain attention in every layer";
  if (wrong.empty() && (!spec.kv_source.empty() || !spec.keys_as_values.empty()) &&
      (is_latent || spec.qkv_bias || spec.gate_dim() > 0 || spec.qk_norm == QkNorm::whole))
    wrong =
        "kv_source and keys_as_values need plain attention without biases "
        "and gates";
  if (wrong.empty() && !spec.layer_head_dims.empty() &&
      (is_latent || spec.qk_norm == QkNorm::whole))
    wrong = "layer_head_dims needs plain attention with norms per head or none";
  if (wrong.empty() && index.n_heads > 0 && (index.head_dim < 1 || index.top_k < 1))
    wrong = "index needs a head_dim and a top_k";
  if (wrong.empty() && index.n_heads > 0 && index.block == 0 && !is_latent &&
      !has(spec, Mixer::shared))
    wrong = "index without block needs latent or shared layers";
  if (wrong.empty()) wrong = wrong_streams(spec);
  if (wrong.empty()) wrong = wrong_shared(spec);
  if (wrong.empty() && !(spec.norm_eps >= 0 && spec.norm_eps <= 1))
    wrong = fmt::format("norm_eps is {}, expected 0 to 1", spec.norm_eps);
  if (wrong.empty() && spec.query_growth != 0 && !(spec.query_growth_context > 0))
    wrong = "query_growth needs a query_growth_context above 0";
  if (wrong.empty()) wrong = wrong_rope(spec.rope);
  for (const RopeSpec& rope : spec.layer_ropes)
    if (wrong.empty()) wrong = wrong_rope(rope);
  return wrong;
}

}  // namespace sinkscope
