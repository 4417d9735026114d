// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "app/cli/format_text.h"
#include "app/cli/model_card.h"
#include "app/cli/parse_text.h"
#include "capture/checkpoint/spec_fields.h"

namespace sinkscope {
namespace {

std::string rope_text(const RopeSpec& rope) {
  if (rope.rotary_dim == 0) return "none";
  std::string text = fmt::format("theta {}, {} dims of a head", rope.theta, rope.rotary_dim);
  if (rope.scaling != RopeScaling::none)
    text += fmt::format(", {} scaling by {}", to_string(rope.scaling), rope.factor);
  if (rope.has_divisors) text += ", divisors from the file";
  return text;
}

std::string window_text(const std::vector<int>& window) {
  std::vector<int> windowed;
  for (std::size_t layer = 0; layer < window.size(); ++layer)
    if (window[layer] > 0) windowed.push_back(static_cast<int>(layer));
  if (windowed.empty()) return "whole context on every layer";
  const auto [low, high] = std::minmax_element(windowed.begin(), windowed.end(), [&](int a, int b) {
    return window[static_cast<std::size_t>(a)] < window[static_cast<std::size_t>(b)];
  });
  const int least = window[static_cast<std::size_t>(*low)];
  const int most = window[static_cast<std::size_t>(*high)];
  const std::string sizes =
      least == most ? fmt::format("{}", least) : fmt::format("{} to {}", least, most);
  return fmt::format("{} keys on {}", sizes,
                     windowed.size() == window.size()
                         ? std::string("every layer")
                         : fmt::format("layers {}", format_ranges(windowed)));
}

int count(const std::vector<bool>& layers) {
  return static_cast<int>(std::count(layers.begin(), layers.end(), true));
}

int count(const std::vector<Mixer>& mixers, Mixer kind) {
  return static_cast<int>(std::count(mixers.begin(), mixers.end(), kind));
}

// What the blocks of a model have beyond the Llama family's; empty where that is nothing.
std::string extras_text(const ArchSpec& spec) {
  std::vector<std::string> parts;
  const int n_delta = count(spec.mixers, Mixer::delta);
  const int n_latent = count(spec.mixers, Mixer::latent);
  if (n_delta > 0) parts.push_back(fmt::format("{} layers of linear attention", n_delta));
  if (const int n = count(spec.mixers, Mixer::shared); n > 0)
    parts.push_back(fmt::format("{} layers with one key and value head", n));
  if (n_latent > 0) parts.push_back(fmt::format("{} layers of latent attention", n_latent));
  if (spec.depth_block > 0)
    parts.push_back(fmt::format("attention over depth in blocks of {} layers", spec.depth_block));
  if (spec.relative.dim > 0)
    parts.push_back(fmt::format("logits by distance (rank {})", spec.relative.dim));
  if (spec.index.top_k > 0)
    parts.push_back(fmt::format(
        "{} {} selected", spec.index.top_k,
        spec.index.block > 0 ? fmt::format("blocks of {} keys", spec.index.block) : "keys"));
  if (!spec.sinks.empty())
    parts.push_back(fmt::format("sink logits{} in {} layers",
                                spec.sink_projection ? " for each query" : "", count(spec.sinks)));
  if (spec.attn_gate == AttnGate::elementwise) parts.emplace_back("gated attention output");
  if (spec.attn_gate == AttnGate::headwise)
    parts.emplace_back("attention output gated head by head");
  if (spec.norm_gate_rank > 0)
    parts.push_back(fmt::format("gated norms (rank {})", spec.norm_gate_rank));
  if (spec.score_cap > 0) parts.push_back(fmt::format("scores capped at {}", spec.score_cap));
  if (spec.logit_cap > 0) parts.push_back(fmt::format("logits capped at {}", spec.logit_cap));
  if (spec.parallel) parts.emplace_back("attention and MLP in parallel");
  if (spec.bidirectional) parts.emplace_back("queries see later keys, too");
  if (spec.post_norm) parts.emplace_back("norms behind the adds");
  int n_shared = 0;
  for (int layer = 0; layer < spec.n_layers; ++layer) n_shared += spec.has_own_keys(layer) ? 0 : 1;
  if (n_shared > 0) parts.push_back(fmt::format("{} layers with keys of earlier ones", n_shared));
  if (spec.has_streams()) parts.push_back(fmt::format("{} residual streams", spec.streams.n));
  if (const int n = count(spec.ngram_layers); n > 0)
    parts.push_back(fmt::format("embeddings of n-grams in {} layers", n));
  if (const auto n =
          std::count_if(spec.compress.begin(), spec.compress.end(), [](int m) { return m > 0; });
      n > 0)
    parts.push_back(fmt::format("compressed keys in {} layers", n));
  if (spec.d_per_layer > 0)
    parts.push_back(fmt::format("inputs of {} dims for every layer", spec.d_per_layer));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string experts_text(const MoeSpec& moe, int n_layers) {
  return fmt::format("{} of width {} in {} layers, {} a token{}", moe.n_experts, moe.d_expert,
                     n_layers, moe.n_used,
                     moe.d_shared > 0 ? fmt::format(", one shared of width {}", moe.d_shared) : "");
}

std::string head_text(const ArchSpec& spec) {
  if (!spec.has_head) return "none: runs end at the final norm";
  return spec.tied ? "tied to the embedding" : "untied";
}

std::string tokenizer_text(const ModelCard& card) {
  if (card.tokenizer.empty()) return fmt::format("unreadable: {}", card.tokenizer_reason);
  const std::string bos = card.bos_id < 0
                              ? std::string("no BOS")
                              : fmt::format("BOS {} {}, {}", card.bos_id, card.bos_piece,
                                            card.adds_bos ? "put first" : "not put first");
  return fmt::format("{}, {} tokens, {}", card.tokenizer, format_count(card.tokenizer_vocab), bos);
}

}  // namespace

std::string card_text(const ModelCard& card) {
  const ArchSpec& spec = card.spec;
  std::string text;
  const auto row = [&](const char* name, const std::string& value) {
    text += fmt::format("  {:<12} {}\n", name, value);
  };
  // Sizes that the config of an unknown family did not give are 0.
  const auto row_if = [&](std::int64_t size, const char* name, const std::string& value) {
    if (size > 0) row(name, value);
  };
  text += fmt::format("{}\n", spec.name.empty() ? card.path : spec.name);
  row("family", spec.architecture.empty() ? "unknown" : spec.architecture);
  row("container",
      fmt::format("{}, {} tensors, {}", card.container == Container::gguf ? "GGUF" : "safetensors",
                  format_count(card.n_tensors), format_bytes(card.n_bytes)));
  row("parameters", format_count(card.n_parameters));
  row_if(spec.n_layers, "layers", fmt::format("{}", spec.n_layers));
  row_if(spec.n_heads, "heads",
         fmt::format("{} query, {} key/value, head_dim {} ({})", spec.n_heads, spec.n_kv_heads,
                     spec.head_dim,
                     card.head_dim_source == "config" ? "from the config" : "inferred"));
  row_if(spec.d_model, "width",
         spec.d_mlp > 0 ? fmt::format("d_model {}, mlp {}", spec.d_model, spec.d_mlp)
                        : fmt::format("d_model {}", spec.d_model));
  row_if(spec.vocab_size, "vocabulary", format_count(spec.vocab_size));
  row_if(spec.n_ctx, "context", format_count(spec.n_ctx));
  if (card.is_known_family) {
    row("rope", rope_text(spec.rope) + (spec.layer_ropes.empty() ? "" : ", differs by layer"));
    if (spec.moe.n_experts > 0) row("experts", experts_text(spec.moe, count(spec.moe_layers)));
    if (const std::string extras = extras_text(spec); !extras.empty()) row("also", extras);
    row("attention", window_text(spec.window));
    row("norm",
        fmt::format("{}, eps {}{}{}", kNormKinds[static_cast<std::size_t>(spec.norm_kind)],
                    spec.norm_eps,
                    spec.norm_offset != 0 ? fmt::format(", gain = stored + {}", spec.norm_offset)
                                          : std::string(),
                    spec.qk_norm == QkNorm::none    ? ""
                    : spec.qk_norm == QkNorm::whole ? ", q and k normed over all heads"
                                                    : ", q and k normed per head"));
    row("head", head_text(spec));
  }
  row("tokenizer", tokenizer_text(card));
  text += "\n";
  for (const DtypeRow& dtype : card.dtypes)
    text +=
        fmt::format("  {:<10} {:>6} tensors {:>12}{}\n", dtype.dtype, format_count(dtype.n_tensors),
                    format_bytes(dtype.n_bytes), dtype.readable ? "" : "   cannot be decoded here");
  for (const std::string& warning : card.warnings) text += fmt::format("\nwarning: {}", warning);
  for (const std::string& obstacle : card.obstacles)
    text += fmt::format("\ncannot be run: {}", obstacle);
  if (!card.warnings.empty() || !card.obstacles.empty()) text += "\n";
  return text;
}

}  // namespace sinkscope
