// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/model_card.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/cli/format_text.h"
#include "app/cli/parse_text.h"
#include "capture/checkpoint/gguf_file.h"
#include "capture/tokenizer/tokenizer.h"
#include "core/error.h"

namespace sinkscope {
namespace {

// ArchSpec does not say where its head_dim came from; the config does.
std::string head_dim_source(const ModelFiles& model) {
  if (model.gguf() != nullptr) {
    const std::string key = model.spec().architecture + ".attention.key_length";
    return model.gguf()->find_key(key) != nullptr ? "config" : "inferred";
  }
  const auto config = nlohmann::json::parse(model.config_text(), nullptr, false);
  const bool is_given =
      config.is_object() && config.contains("head_dim") && config["head_dim"].is_number();
  return is_given ? "config" : "inferred";
}

void count_tensors(const Checkpoint& checkpoint, ModelCard& card) {
  std::map<std::string, DtypeRow> rows;
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    DtypeRow& row = rows[tensor.dtype];
    row.dtype = tensor.dtype;
    row.n_tensors += 1;
    row.n_elements += tensor.n_elements();
    row.n_bytes += static_cast<std::int64_t>(tensor.n_bytes);
    row.readable = row.readable && tensor.readable;
  }
  for (const auto& [dtype, row] : rows) {
    card.dtypes.push_back(row);
    card.n_tensors += row.n_tensors;
    card.n_parameters += row.n_elements;
    card.n_bytes += row.n_bytes;
  }
  std::stable_sort(card.dtypes.begin(), card.dtypes.end(),
                   [](const DtypeRow& a, const DtypeRow& b) { return a.n_bytes > b.n_bytes; });
}

void describe_tokenizer(const ModelFiles& model, ModelCard& card) {
  try {
    const auto tokenizer = open_tokenizer(model);
    card.tokenizer = tokenizer->name();
    card.tokenizer_vocab = tokenizer->vocab_size();
    card.bos_id = tokenizer->bos_id();
    if (card.bos_id < 0) return;
    card.bos_piece = tokenizer->raw_piece(card.bos_id);
    // What the rule comes to, whatever it is made of.
    const std::vector<int> ids = tokenizer->encode("a").ids;
    card.adds_bos = !ids.empty() && ids.front() == card.bos_id;
  } catch (const Error& error) {
    card.tokenizer.clear();
    card.tokenizer_reason = error.what();
  }
}

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

const char* qk_norm_name(QkNorm norm) {
  return norm == QkNorm::per_head ? "per_head" : norm == QkNorm::whole ? "whole" : "none";
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

const char* head_name(const ArchSpec& spec) {
  return !spec.has_head ? "none" : spec.tied ? "tied" : "untied";
}

const char* norm_kind_name(NormKind kind) { return kind == NormKind::rms ? "rms" : "layer_norm"; }

}  // namespace

ModelCard model_card(const ModelFiles& model) {
  ModelCard card;
  card.spec = model.spec();
  card.container = model.container();
  card.path = model.path();
  card.is_known_family = model.has(Role::o, 0);
  card.head_dim_source = head_dim_source(model);
  card.warnings = model.warnings();
  card.obstacles = model.obstacles();
  count_tensors(model.checkpoint(), card);
  describe_tokenizer(model, card);
  return card;
}

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
        fmt::format("{}, eps {}{}{}", norm_kind_name(spec.norm_kind), spec.norm_eps,
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

nlohmann::ordered_json card_json(const ModelCard& card) {
  using Json = nlohmann::ordered_json;
  const ArchSpec& spec = card.spec;
  Json tokenizer = nullptr;
  if (!card.tokenizer.empty())
    tokenizer = Json{{"name", card.tokenizer},
                     {"vocab_size", card.tokenizer_vocab},
                     {"bos_id", card.bos_id < 0 ? Json(nullptr) : Json(card.bos_id)},
                     {"bos_piece", card.bos_piece},
                     {"adds_bos", card.adds_bos}};
  Json rope = nullptr, norm = nullptr;
  if (card.is_known_family) {
    rope = Json{{"rotary_dim", spec.rope.rotary_dim},
                {"theta", spec.rope.theta},
                {"scaling", to_string(spec.rope.scaling)},
                {"factor", spec.rope.factor}};
    norm = Json{{"kind", norm_kind_name(spec.norm_kind)},
                {"eps", spec.norm_eps},
                {"offset", spec.norm_offset},
                {"qk", qk_norm_name(spec.qk_norm)}};
  }
  Json dtypes = Json::array();
  for (const DtypeRow& row : card.dtypes)
    dtypes.push_back({{"dtype", row.dtype},
                      {"tensors", row.n_tensors},
                      {"elements", row.n_elements},
                      {"bytes", row.n_bytes},
                      {"readable", row.readable}});
  return Json{{"schema", "sinkscope.info/1"},
              {"conventions",
               {{"parameters", "stored elements of all tensors"},
                {"windows", "keys a query sees, its own included; 0 = all before it"},
                {"gain", "effective = stored + norm_offset"}}},
              {"name", spec.name},
              {"path", card.path},
              {"container", card.container == Container::gguf ? "gguf" : "safetensors"},
              {"architecture", spec.architecture},
              {"n_layers", spec.n_layers},
              {"n_heads", spec.n_heads},
              {"n_kv_heads", spec.n_kv_heads},
              {"head_dim", spec.head_dim},
              {"head_dim_source", card.head_dim_source},
              {"d_model", spec.d_model},
              {"d_mlp", spec.d_mlp},
              {"vocab_size", spec.vocab_size},
              {"n_ctx", spec.n_ctx},
              {"rope", rope},
              {"windows", card.is_known_family ? Json(spec.window) : Json(nullptr)},
              {"norm", norm},
              {"head", card.is_known_family ? Json(head_name(spec)) : Json(nullptr)},
              {"parameters", card.n_parameters},
              {"tensors", card.n_tensors},
              {"bytes", card.n_bytes},
              {"dtypes", dtypes},
              {"tokenizer", tokenizer},
              {"tokenizer_reason", card.tokenizer_reason},
              {"warnings", card.warnings},
              {"obstacles", card.obstacles}};
}

}  // namespace sinkscope
