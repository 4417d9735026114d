// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/what_if/edit_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>

#include "core/number_text.h"
#include "core/what_if/outcome.h"

namespace sinkscope {
namespace {

constexpr std::size_t kListed = 10;  // so many indices are named one by one

// ", dimensions 507" and so on, for what is not "all".
void add(std::string& text, const char* what, const IndexSet& set) {
  if (!set.is_all()) text += fmt::format(", {} {}", what, set.text());
}
void add(std::string& text, const TokenSet& tokens) {
  if (tokens != TokenSet()) text += fmt::format(", tokens {}", tokens.text());
}
void add(std::string& text, const char* what, const NameList& names) {
  if (!names.empty()) text += fmt::format(", {} {}", what, fmt::join(names, " "));
}

std::string beginning(const ResidualClip& e) {
  return fmt::format("clip the stream at ±{}", readable(e.limit));
}
std::string beginning(const ResidualSet& e) {
  if (e.how == ResidualSet::How::mean) return "set the stream to its mean";
  if (e.how == ResidualSet::How::scale)
    return fmt::format("scale the stream by {}", readable(e.number));
  return fmt::format("set the stream to {}", readable(e.number));
}
std::string beginning(const NormProbe& e) {
  std::string text = fmt::format("probe norms: {}", name_of(e.mode));
  if (e.mode == ProbeMode::clamp) text += fmt::format(" at τ = {}", readable(e.tau));
  return text;
}
std::string beginning(const NormReplace& e) {
  std::string text = fmt::format("norms become {}", name_of(e.with));
  const bool is_gate =
      e.with == NormReplace::With::gatednorm || e.with == NormReplace::With::tensor_gate;
  if (!e.weights.empty())
    text += " of " + e.weights;
  else if (is_gate)
    text += fmt::format(", {} start", e.start);
  else if (is_of_dims(e))
    text += fmt::format(", λ₁ = {}", readable(e.lambda));
  return text;
}
std::string beginning(const AttentionNormalizer& e) {
  std::string text = name_of(e.normalizer.kind);
  if (e.normalizer.kind == NormalizerKind::sink_logit) {
    text += e.from_checkpoint       ? " b of the checkpoint"
            : e.sink_logits.empty() ? fmt::format(" b = {}", readable(e.normalizer.sink_logit))
                                    : fmt::format(" with {} values of b", e.sink_logits.size());
  } else if (e.normalizer.kind == NormalizerKind::clipped) {
    text +=
        fmt::format(" γ = {}, ζ = {}", readable(e.normalizer.gamma), readable(e.normalizer.zeta));
  }
  return text + " attention";
}
std::string beginning(const AttentionMaskKey& e) {
  return fmt::format("drop keys {}{}", e.keys.text(), e.renormalize ? "" : ", mass lost");
}
std::string beginning(const AttentionValue& e) {
  return fmt::format("scale values by {}", readable(e.scale));
}
std::string beginning(const AttentionGate& e) {
  return e.weights.empty() ? fmt::format("gate heads by {}", readable(e.value))
                           : "gate heads with " + e.weights;
}
std::string beginning(const MlpActivation& e) {
  return fmt::format("MLP activation becomes {}", name_of(e.kind));
}

}  // namespace

WhatIf switched_on(const EditList& edits) {
  WhatIf on;
  for (const SwitchedEdit& one : edits)
    if (one.is_on) on.push_back(one.edit);
  return on;
}

std::string edit_sentence(const Edit& edit) {
  return std::visit(
      [](const auto& e) {
        std::string text = beginning(e);
        if constexpr (requires { e.dims; }) add(text, "dimensions", e.dims);
        if constexpr (requires { e.tokens; }) add(text, e.tokens);
        if constexpr (requires { e.sites; }) add(text, "sites", e.sites);
        if constexpr (requires { e.norms; }) add(text, "norms", e.norms);
        add(text, "layers", e.layers);
        if constexpr (requires { e.heads; }) add(text, "heads", e.heads);
        return text;
      },
      edit);
}

std::string reach_text(const Edit& edit, const EditSpace& space) {
  const Touched touched = touched_by({edit}, {space.token_ids}, space.attention_layers,
                                     space.attention_layers.empty() ? 0 : space.n_layers)
                              .front();
  std::string text;
  const auto part = [&](const char* what, const std::vector<int>& there, std::size_t of) {
    text += fmt::format("{}{} {} of {}", text.empty() ? "" : " · ", what, there.size(), of);
    if (there.size() < of && !there.empty() && there.size() <= kListed)
      text += fmt::format(" ({})", fmt::join(there, ", "));
  };
  const auto part_of = [&](const char* what, const std::optional<IndexSet>& set, std::size_t of) {
    if (!set) return;
    std::vector<int> there;
    for (int i = 0; i < static_cast<int>(of); ++i)
      if (set->contains(i)) there.push_back(i);
    part(what, there, of);
  };
  const auto count = [](int n) { return static_cast<std::size_t>(n); };
  if (!touched.tokens.empty()) part("tokens", touched.tokens.front(), space.token_ids.size());
  part_of("keys", touched.keys, space.token_ids.size());
  part_of("dimensions", touched.dims, count(space.d_model));
  part_of("heads", touched.heads, count(space.n_heads));
  part_of("layers", touched.layers, count(space.n_layers));
  return text;
}

std::vector<EditTemplate> edit_templates(const EditPlace& place) {
  const std::string head = fmt::format(R"("layers":[{}],"heads":[{}])", place.layer, place.head);
  const std::string dim = fmt::format(R"("dims":[{}])", place.dim);
  const auto attention = [&](const char* kind) {
    return fmt::format(R"("attention.normalizer","kind":{},{})", kind, head);
  };
  const std::pair<const char*, std::string> texts[] = {
      {"Clip the stream", R"("residual.clip","limit":100)"},
      {"Set the stream in a dimension", R"("residual.set","value":"mean","tokens":"first",)" + dim},
      {"Scale the stream in a dimension", R"("residual.set","scale":0.5,)" + dim},
      {"Probe what norms see of a dimension", R"("norm.probe","mode":"zero",)" + dim},
      {"Replace norms", R"("norm.replace","with":"gatednorm")"},
      {"Scale a dimension in front of norms",
       R"("norm.replace","with":"preaffine","lambda":2,)" + dim},
      {"Attention: softmax1", attention(R"("softmax1")")},
      {"Attention: sink logit", attention(R"("sink_logit","b":0)")},
      {"Attention: clipped softmax", attention(R"("clipped","gamma":-0.03)")},
      {"Attention: sparsemax", attention(R"("sparsemax")")},
      {"Attention: sigmoid", attention(R"("sigmoid")")},
      {"Drop keys", R"("attention.mask_key","keys":[0],)" + head},
      {"Scale values", R"("attention.value","scale":0,"tokens":[0],)" + head},
      {"Gate heads", R"("attention.gate","value":0.5,)" + head},
      {"Replace the MLP's activation", R"("mlp.activation","kind":"sigmoid")"},
  };
  std::vector<EditTemplate> templates;
  for (const auto& [name, text] : texts)
    templates.push_back({name, parse_what_if(R"({"edit":)" + text + "}").front()});
  return templates;
}

}  // namespace sinkscope
