// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/edits/what_if_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "capture/edits/edit_weights.h"
#include "core/error.h"

namespace sinkscope {
namespace {

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorKind::invalid_argument, message);
}

}  // namespace

at::Tensor index_tensor(const std::vector<int>& members, at::Device device) {
  std::vector<std::int64_t> values(members.begin(), members.end());
  return at::tensor(values, at::kLong).to(device);
}

void WhatIfParts::prepare() {
  for (std::size_t i = 0; i < what_if.size(); ++i) check(i);
  add_attention();
}

template <class E>
bool WhatIfParts::at_block_norm(const E& edit, int layer) const {
  return std::any_of(std::begin(kBlockNorms), std::end(kBlockNorms),
                     [&](Role role) { return at_norm(edit, role, layer); });
}

// Whether names and layers together leave any place at all.
template <class E>
bool WhatIfParts::takes_effect(const E& edit) const {
  if constexpr (requires { edit.sites; }) {
    bool any = is_at_state(edit, Site::resid_pre, 0, spec.n_layers);
    for (int layer = 0; layer < spec.n_layers; ++layer)
      any = any || (!spec.parallel && is_at_state(edit, Site::resid_mid, layer, spec.n_layers)) ||
            is_at_state(edit, Site::resid_post, layer, spec.n_layers);
    return any;
  } else if constexpr (requires { edit.norms; }) {
    bool any = at_norm(edit, Role::ln_final, kNoLayer);
    for (int layer = 0; layer < spec.n_layers; ++layer) any = any || at_block_norm(edit, layer);
    return any;
  }
  if constexpr (requires { edit.heads; }) {
    const std::vector<int> blocks = spec.attention_layers();
    return std::any_of(blocks.begin(), blocks.end(),
                       [&](int layer) { return edit.layers.contains(layer); });
  }
  return true;
}

// The first layer or name of the edit that has no place of its own here; empty: each has one.
template <class E>
std::string WhatIfParts::idle_part(E edit) const {
  const IndexSet layers = edit.layers;
  const auto is_idle_at = [&](int layer) {
    edit.layers = IndexSet({layer});
    if constexpr (requires { edit.norms; }) return !at_block_norm(edit, layer);
    return !takes_effect(edit);
  };
  for (int layer : layers.members())
    if (is_idle_at(layer)) return fmt::format("layer {}", layer);
  edit.layers = layers;
  const auto idle_name = [&](NameList& names) {
    const NameList all = names;
    for (const std::string& name : all) {
      names = {name};
      if (!takes_effect(edit)) return name;
    }
    return std::string();
  };
  if constexpr (requires { edit.sites; }) return idle_name(edit.sites);
  if constexpr (requires { edit.norms; }) return idle_name(edit.norms);
  return {};
}

void WhatIfParts::check(std::size_t i) {
  const char* name = name_of(what_if[i]);
  const auto layers_of = [&](const IndexSet& set) {
    set.within(spec.n_layers, fmt::format("{}: layers", name));
  };
  const auto heads_of = [&](const IndexSet& set) {
    set.within(spec.n_heads, fmt::format("{}: heads", name));
  };
  const auto dims_of = [&](const IndexSet& set) {
    set.within(spec.d_model, fmt::format("{}: dims", name));
  };
  std::visit(
      [&](const auto& e) {
        using E = std::decay_t<decltype(e)>;
        layers_of(e.layers);
        if constexpr (requires { e.heads; }) heads_of(e.heads);
        if constexpr (std::is_same_v<E, ResidualSet>)
          e.dims.within(spec.state_width(), fmt::format("{}: dims", name));
        else if constexpr (requires { e.dims; })
          dims_of(e.dims);
        if constexpr (requires { e.sites; }) check_sites(name, e.sites, spec);
        if constexpr (requires { e.norms; }) check_norms(name, e.norms, spec);
        if constexpr (requires { e.norms; }) {
          if (spec.has_streams() && !spec.has_ln1 && !spec.has_ln2 && !spec.has_final_norm)
            throw Error(ErrorKind::unsupported,
                        fmt::format("{}: this model's norms are part of the mixes of its {} "
                                    "residual streams and cannot be edited",
                                    name, spec.streams.n));
        }
        if (!takes_effect(e))
          refuse(fmt::format("{}: its names and layers have no place in common{}", name,
                             spec.mixers.empty() ? "" : " with what this model has there"));
        if (const std::string idle = idle_part(e); !idle.empty()) {
          if constexpr (requires { e.heads; })
            refuse(fmt::format("{}: {} has no softmax attention in this model", name, idle));
          refuse(fmt::format("{}: {}: its names and layers have no place in common there", name,
                             idle));
        }
        if constexpr (std::is_same_v<E, MlpActivation>) {
          if (spec.moe.has_own_unit())
            throw Error(ErrorKind::unsupported,
                        "mlp.activation: this model's experts have a gated unit of their own, no "
                        "activation to replace");
        }
        if constexpr (std::is_same_v<E, NormProbe>) {
          if (spec.norm_kind == NormKind::layer_norm && e.mode == ProbeMode::denominator)
            throw Error(ErrorKind::unsupported,
                        "norm.probe: the mode \"denominator\" is defined for RMS norms, this "
                        "model has LayerNorm");
        }
        if constexpr (std::is_same_v<E, NormReplace>) add_replacement(i, e);
        if constexpr (std::is_same_v<E, AttentionGate>) add_gate(i, e);
        if constexpr (std::is_same_v<E, AttentionNormalizer>) {
          if (e.from_checkpoint && spec.sinks.empty())
            throw Error(ErrorKind::unsupported,
                        "attention.normalizer: this checkpoint holds no sink logits (\"b\": "
                        "\"checkpoint\")");
        }
      },
      what_if[i]);
}

void WhatIfParts::add_replacement(std::size_t i, const NormReplace& edit) {
  using With = NormReplace::With;
  std::optional<EditWeights> file;
  if (!edit.weights.empty()) file.emplace(edit.weights, device);
  const std::int64_t D = spec.d_model;
  int n_found = 0;
  const auto add = [&](Role role, int layer) {
    if (!at_norm(edit, role, layer)) return;
    NormReplacement by;
    by.with = edit.with;
    by.doubles_gate = edit.start == "identity" && !file;
    const std::string prefix = norm_name(norm_role_name(role), layer);
    if (edit.with == With::preaffine) {
      if (file) by.pre_gain = file->read(prefix + ".pre_gain", {D});
      if (!file && edit.lambda != 1)
        by.pre_gain = at::ones({D}, at::dtype(at::kFloat).device(device))
                          .index_fill_(0, dims(edit.dims), edit.lambda);
      const bool has_own =
          spec.pre_affine && (role == Role::ln1 || role == Role::ln2 || role == Role::ln_final);
      if (has_own) by.own_pre_gain = own_pre_gain(role, layer);
    } else if (file) {
      by.gate_down = file->read(prefix + ".gate_down", {-1, D});
      by.gate_up = file->read(prefix + ".gate_up",
                              {edit.with == With::gatednorm ? D : 1, by.gate_down.size(0)});
    }
    replacements[{i, Place{role, Site::resid_pre, layer}}] = by;
    ++n_found;
  };
  for (int layer = 0; layer < spec.n_layers; ++layer)
    for (const Role role : kBlockNorms) add(role, layer);
  add(Role::ln_final, kNoLayer);
  if (n_found == 0) refuse("norm.replace: its norms and layers name no norm of this model");
}

// What the norm's input was multiplied by before it came here; to be undone.
at::Tensor WhatIfParts::own_pre_gain(Role norm, int layer) const {
  const Role role = norm == Role::ln1   ? Role::ln1_pre
                    : norm == Role::ln2 ? Role::ln2_pre
                                        : Role::ln_final_pre;
  at::Tensor gain = at::tensor(model.read_vector(role, layer), at::kFloat);
  if (gain.eq(0).any().item<bool>())
    throw Error(
        ErrorKind::unsupported,
        fmt::format("norm.replace: {}: the model's own PreAffine gain holds zeros, which no "
                    "other gain can undo",
                    norm_name(norm_role_name(norm), layer)));
  return gain.to(device);
}

// A head shares what its lost keys had among the others, or does not: one of the two.
void WhatIfParts::check_masks() const {
  std::map<std::pair<int, int>, bool> renormalizes;  // (layer, head)
  for (const Edit& edit : what_if) {
    const auto* mask = std::get_if<AttentionMaskKey>(&edit);
    if (mask == nullptr) continue;
    for (int layer : mask->layers.within(spec.n_layers, "layers"))
      for (int head : mask->heads.within(spec.n_heads, "heads")) {
        const auto [known, is_new] =
            renormalizes.emplace(std::pair(layer, head), mask->renormalize);
        if (!is_new && known->second != mask->renormalize)
          refuse(
              fmt::format("attention.mask_key: two edits of layer {}, head {} say different "
                          "things of \"renormalize\"",
                          layer, head));
      }
  }
}

void WhatIfParts::add_attention() {
  check_masks();
  for (std::size_t i = 0; i < what_if.size(); ++i) {
    const auto* swap = std::get_if<AttentionNormalizer>(&what_if[i]);
    const bool touches = swap != nullptr || std::holds_alternative<AttentionMaskKey>(what_if[i]) ||
                         std::holds_alternative<AttentionValue>(what_if[i]);
    if (!touches) continue;
    const IndexSet layers = std::visit([](const auto& e) { return e.layers; }, what_if[i]);
    for (int layer : layers.within(spec.n_layers, "layers")) {
      AttentionEdit& edit = attention[layer];
      edit.normalizers.resize(static_cast<std::size_t>(spec.n_heads));
      if (swap == nullptr) continue;
      const std::vector<int> heads = swap->heads.within(spec.n_heads, "heads");
      if (!swap->sink_logits.empty() && swap->sink_logits.size() != heads.size())
        refuse(fmt::format("attention.normalizer: \"b\": expected {} numbers, one a head, found {}",
                           heads.size(), swap->sink_logits.size()));
      for (std::size_t h = 0; h < heads.size(); ++h) {
        std::optional<Normalizer>& normalizer =
            edit.normalizers[static_cast<std::size_t>(heads[h])];
        if (swap->from_checkpoint) {
          normalizer.reset();
          continue;
        }
        normalizer = swap->normalizer;
        if (!swap->sink_logits.empty()) normalizer->sink_logit = swap->sink_logits[h];
      }
    }
  }
}

void WhatIfParts::add_gate(std::size_t i, const AttentionGate& edit) {
  const std::int64_t H = spec.n_heads;
  std::optional<EditWeights> file;
  if (!edit.weights.empty()) file.emplace(edit.weights, device);
  for (int layer : edit.layers.within(spec.n_layers, "layers")) {
    if (!file) {
      gates[{i, layer}] = at::Tensor();
      continue;
    }
    const std::string name = fmt::format("blocks.{}.attn.gate", layer);
    const std::int64_t d = spec.d_value_of(layer);
    at::Tensor gate = file->read(name, {-1, spec.d_model});
    if (gate.size(0) != H && gate.size(0) != H * d)
      refuse(fmt::format("{}: {}: expected {} rows (one a head) or {} (one an element), found {}",
                         edit.weights, name, H, H * d, gate.size(0)));
    gates[{i, layer}] = gate;
  }
}

}  // namespace sinkscope
