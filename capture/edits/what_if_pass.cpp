// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/edits/what_if_pass.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "capture/edits/edit_weights.h"
#include "capture/edits/norm_edits.h"
#include "capture/model/forward.h"
#include "core/error.h"
#include "core/site_name.h"

namespace sinkscope {
namespace {

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorKind::invalid_argument, message);
}

const char* norm_role_name(Role role) {
  return role == Role::ln1 ? "ln1" : role == Role::ln2 ? "ln2" : "ln_final";
}

// "hook_resid_post" or "blocks.3.hook_resid_post" against (site, layer). No name means the states
// that differ: the first resid_pre, every mid and post.
bool names_site(const NameList& names, Site site, int layer) {
  if (names.empty()) return site != Site::resid_pre || layer == 0;
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    const SiteName wanted = SiteName::parse(name);
    if (wanted.hook != hook_name(site)) return false;
    return name == wanted.hook || wanted.layer == layer;
  });
}

bool names_norm(const NameList& names, Role role, int layer) {
  if (names.empty()) return true;
  const std::string own = norm_role_name(role);
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return name == own || name == norm_name(own.c_str(), layer);
  });
}

void check_sites(const char* edit, const NameList& names, int n_layers) {
  for (const std::string& name : names) {
    bool exists = false;
    for (int layer = 0; layer < n_layers && !exists; ++layer)
      for (Site site : {Site::resid_pre, Site::resid_mid, Site::resid_post})
        exists = exists || names_site({name}, site, layer);
    if (!exists)
      refuse(
          fmt::format("{}: no residual site '{}' in this model of {} blocks; expected "
                      "hook_resid_pre, hook_resid_mid, hook_resid_post, with or without "
                      "blocks.N.",
                      edit, name, n_layers));
  }
}

void check_norms(const char* edit, const NameList& names, int n_layers) {
  for (const std::string& name : names) {
    bool exists = names_norm({name}, Role::ln_final, kNoLayer);
    for (int layer = 0; layer < n_layers && !exists; ++layer)
      exists = names_norm({name}, Role::ln1, layer) || names_norm({name}, Role::ln2, layer);
    if (!exists)
      refuse(
          fmt::format("{}: no norm '{}' in this model of {} blocks; expected ln1, ln2, "
                      "ln_final, with or without blocks.N.",
                      edit, name, n_layers));
  }
}

at::Tensor indices(const std::vector<int>& members, at::Device device) {
  std::vector<std::int64_t> values(members.begin(), members.end());
  return at::tensor(values, at::kLong).to(device);
}

}  // namespace

// What the lanes share.
struct WhatIfPass::Parts {
  WhatIf what_if;
  const ArchSpec& spec;
  at::Device device;
  std::vector<std::vector<int>> token_ids;                    // a lane
  std::map<std::pair<std::size_t, Place>, at::Tensor> means;  // (edit, place) -> [n dims]
  std::map<std::pair<std::size_t, Place>, NormReplacement> replacements;
  std::map<int, AttentionEdit> attention;  // by layer; masks and value scales are the lane's own
  std::map<std::pair<std::size_t, int>, at::Tensor> gates;  // (edit, layer) -> weights or factors

  at::Tensor mask(const TokenSet& tokens, const std::vector<int>& ids) const {
    at::Tensor mask = at::zeros({static_cast<std::int64_t>(ids.size())}, at::kBool);
    for (int t : tokens.of(ids)) mask[t] = true;
    return mask.to(device);
  }
  at::Tensor dims(const IndexSet& set) const {
    return indices(set.within(spec.d_model, "dims"), device);
  }
  bool at_norm(const NameList& names, const IndexSet& layers, Role role, int layer) const {
    // Blocks are chosen by layers; the final norm belongs to no block, so a choice leaves it out.
    const bool in_layers =
        layer == kNoLayer ? layers.is_all() || !names.empty() : layers.contains(layer);
    return in_layers && names_norm(names, role, layer);
  }
  void check(std::size_t i);
  void add_replacement(std::size_t i, const NormReplace& edit);
  void add_attention();
  void add_gate(std::size_t i, const AttentionGate& edit);
};

void WhatIfPass::Parts::check(std::size_t i) {
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
        if constexpr (requires { e.dims; }) dims_of(e.dims);
        if constexpr (requires { e.sites; }) check_sites(name, e.sites, spec.n_layers);
        if constexpr (requires { e.norms; }) check_norms(name, e.norms, spec.n_layers);
        if constexpr (std::is_same_v<E, NormReplace>) add_replacement(i, e);
        if constexpr (std::is_same_v<E, AttentionGate>) add_gate(i, e);
        if constexpr (std::is_same_v<E, AttentionNormalizer>) {
          if (e.from_checkpoint)
            throw Error(ErrorKind::unsupported,
                        "attention.normalizer: this checkpoint holds no sink logits (\"b\": "
                        "\"checkpoint\")");
        }
      },
      what_if[i]);
}

void WhatIfPass::Parts::add_replacement(std::size_t i, const NormReplace& edit) {
  using With = NormReplace::With;
  std::optional<EditWeights> file;
  if (!edit.weights.empty()) file.emplace(edit.weights, device);
  const std::int64_t D = spec.d_model;
  int n_found = 0;
  const auto add = [&](Role role, int layer) {
    if (!at_norm(edit.norms, edit.layers, role, layer)) return;
    NormReplacement by;
    by.with = edit.with;
    by.doubles_gate = edit.start == "identity" && !file;
    const std::string prefix = norm_name(norm_role_name(role), layer);
    if (file && edit.with == With::preaffine) {
      by.pre_gain = file->read(prefix + ".pre_gain", {D});
    } else if (file) {
      by.gate_down = file->read(prefix + ".gate_down", {-1, D});
      by.gate_up = file->read(prefix + ".gate_up",
                              {edit.with == With::gatednorm ? D : 1, by.gate_down.size(0)});
    }
    replacements[{i, Place{role, Site::resid_pre, layer}}] = by;
    ++n_found;
  };
  for (int layer = 0; layer < spec.n_layers; ++layer) {
    add(Role::ln1, layer);
    add(Role::ln2, layer);
  }
  add(Role::ln_final, kNoLayer);
  if (n_found == 0) refuse("norm.replace: its norms and layers name no norm of this model");
}

void WhatIfPass::Parts::add_attention() {
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
        Normalizer& normalizer = edit.normalizers[static_cast<std::size_t>(heads[h])];
        normalizer = swap->normalizer;
        if (!swap->sink_logits.empty()) normalizer.sink_logit = swap->sink_logits[h];
      }
    }
  }
}

void WhatIfPass::Parts::add_gate(std::size_t i, const AttentionGate& edit) {
  const std::int64_t H = spec.n_heads, d = spec.head_dim;
  std::optional<EditWeights> file;
  if (!edit.weights.empty()) file.emplace(edit.weights, device);
  for (int layer : edit.layers.within(spec.n_layers, "layers")) {
    if (!file) {
      gates[{i, layer}] = at::Tensor();
      continue;
    }
    const std::string name = fmt::format("blocks.{}.attn.gate", layer);
    at::Tensor gate = file->read(name, {-1, spec.d_model});
    if (gate.size(0) != H && gate.size(0) != H * d)
      refuse(fmt::format("{}: {}: expected {} rows (one a head) or {} (one an element), found {}",
                         edit.weights, name, H, H * d, gate.size(0)));
    gates[{i, layer}] = gate;
  }
}

class WhatIfPass::Lane final : public Interventions {
 public:
  Lane(Parts& parts, const std::vector<int>& token_ids) : parts_(parts), ids_(token_ids) {}

  at::Tensor on_residual(Site site, int layer, const at::Tensor& x) override {
    at::Tensor state = x;
    for (std::size_t i = 0; i < parts_.what_if.size(); ++i) {
      if (const auto* clip = std::get_if<ResidualClip>(&parts_.what_if[i])) {
        if (!is_at(*clip, site, layer)) continue;
        const at::Tensor rows = parts_.mask(clip->tokens, ids_).view({1, -1, 1});
        state = at::where(rows, state.clamp(-clip->limit, clip->limit), state);
      } else if (const auto* set = std::get_if<ResidualSet>(&parts_.what_if[i])) {
        if (is_at(*set, site, layer)) state = set_dims(i, *set, site, layer, state);
      }
    }
    return state;
  }

  at::Tensor on_norm(Role role, int layer, const at::Tensor& x, const at::Tensor& gain,
                     double eps) override {
    const Place place{role, Site::resid_pre, layer};
    at::Tensor seen = x;
    for_probes(place, [&](std::size_t i, const NormProbe& probe, const ProbeTarget& target) {
      seen = probed_input(probe, target, seen, mean_of(i, place));
    });
    at::Tensor y = norm(place, seen, gain, eps);
    for_probes(place, [&](std::size_t i, const NormProbe& probe, const ProbeTarget& target) {
      y = probed_output(probe, target, x, y, eps, mean_of(i, place));
    });
    return y;
  }

  const AttentionEdit* on_attention(int layer) override {
    const auto found = parts_.attention.find(layer);
    if (found == parts_.attention.end()) return nullptr;
    current_ = found->second;
    for (const Edit& edit : parts_.what_if) {
      if (const auto* mask = std::get_if<AttentionMaskKey>(&edit)) lose_keys(*mask, layer);
      if (const auto* value = std::get_if<AttentionValue>(&edit)) scale_values(*value, layer);
    }
    return &current_;
  }

  at::Tensor on_z(int layer, const at::Tensor& z, const at::Tensor& n1) override {
    at::Tensor out = z;
    for (std::size_t i = 0; i < parts_.what_if.size(); ++i) {
      const auto* gate = std::get_if<AttentionGate>(&parts_.what_if[i]);
      if (gate == nullptr || !gate->layers.contains(layer)) continue;
      const at::Tensor& weights = parts_.gates.at({i, layer});
      const at::Tensor heads =
          indices(gate->heads.within(parts_.spec.n_heads, "heads"), z.device());
      at::Tensor factor;
      if (weights.defined()) {
        factor = n1.to(at::kFloat).matmul(weights.t()).sigmoid();
        factor = factor.view({1, z.size(1), z.size(2), -1}).index_select(2, heads);
      } else {
        factor = at::full({1, 1, 1, 1}, gate->value, z.options().dtype(at::kFloat));
      }
      const at::Tensor gated = (out.index_select(2, heads) * factor).to(z.scalar_type());
      out = out.index_copy(2, heads, gated);
    }
    return out;
  }

  at::Tensor on_activation(int layer, const at::Tensor& gate) override {
    for (auto edit = parts_.what_if.rbegin(); edit != parts_.what_if.rend(); ++edit) {
      const auto* swap = std::get_if<MlpActivation>(&*edit);
      if (swap == nullptr || !swap->layers.contains(layer)) continue;
      switch (swap->kind) {
        case MlpActivation::Kind::silu:
          return at::silu(gate);
        case MlpActivation::Kind::sigmoid:
          return gate.sigmoid();
        case MlpActivation::Kind::gelu:
          return at::gelu(gate);
        case MlpActivation::Kind::relu:
          return at::relu(gate);
      }
    }
    return at::silu(gate);
  }

  // Of the norm as it stands in this what-if, without probes.
  at::Tensor norm(const Place& place, const at::Tensor& x, const at::Tensor& gain,
                  double eps) const {
    for (std::size_t i = parts_.what_if.size(); i-- > 0;)
      if (const auto by = parts_.replacements.find({i, place}); by != parts_.replacements.end())
        return replaced_norm(by->second, x, gain, eps);
    return rms_norm(x, gain, eps);
  }

 private:
  template <class E>
  static bool is_at(const E& edit, Site site, int layer) {
    if (edit.layers.contains(layer) && names_site(edit.sites, site, layer)) return true;
    // resid_pre of a later block is resid_post of the one before.
    return site == Site::resid_post && !edit.sites.empty() && edit.layers.contains(layer + 1) &&
           names_site(edit.sites, Site::resid_pre, layer + 1);
  }
  friend struct WhatIfPass::Parts;
  friend class WhatIfPass;

  at::Tensor mean_of(std::size_t i, const Place& place) const {
    const auto mean = parts_.means.find({i, place});
    return mean == parts_.means.end() ? at::Tensor() : mean->second;
  }

  at::Tensor set_dims(std::size_t i, const ResidualSet& set, Site site, int layer,
                      const at::Tensor& x) const {
    const at::Tensor dims = parts_.dims(set.dims), old = x.index_select(-1, dims);
    at::Tensor values;
    switch (set.how) {
      case ResidualSet::How::value:
        values = at::full_like(old, set.number);
        break;
      case ResidualSet::How::scale:
        values = old * set.number;
        break;
      case ResidualSet::How::mean:
        values = mean_of(i, Place{Role::ln1, site, layer}).to(x.scalar_type()).expand_as(old);
        break;
    }
    const at::Tensor rows = parts_.mask(set.tokens, ids_).view({1, -1, 1});
    return x.index_copy(-1, dims, at::where(rows, values, old));
  }

  template <class F>
  void for_probes(const Place& place, const F& f) const {
    for (std::size_t i = 0; i < parts_.what_if.size(); ++i) {
      const auto* probe = std::get_if<NormProbe>(&parts_.what_if[i]);
      if (probe == nullptr || !parts_.at_norm(probe->norms, probe->layers, place.role, place.layer))
        continue;
      f(i, *probe, ProbeTarget{parts_.mask(probe->tokens, ids_), parts_.dims(probe->dims)});
    }
  }

  void lose_keys(const AttentionMaskKey& mask, int layer) {
    if (!mask.layers.contains(layer)) return;
    const auto T = static_cast<std::int64_t>(ids_.size()), H = std::int64_t{parts_.spec.n_heads};
    if (!current_.lost.defined()) {
      current_.lost = at::zeros({H, T}, at::kBool).to(parts_.device);
      current_.renormalize = at::ones({H}, at::kBool);
    }
    for (int head : mask.heads.within(parts_.spec.n_heads, "heads")) {
      current_.renormalize[head] = mask.renormalize;
      for (int key : mask.keys.members())
        if (key < T) current_.lost[head][key] = true;
    }
  }

  void scale_values(const AttentionValue& value, int layer) {
    if (!value.layers.contains(layer)) return;
    const auto T = static_cast<std::int64_t>(ids_.size()), H = std::int64_t{parts_.spec.n_heads};
    if (!current_.value_scale.defined())
      current_.value_scale = at::ones({H, T}, at::kFloat).to(parts_.device);
    const at::Tensor rows = parts_.mask(value.tokens, ids_);
    for (int head : value.heads.within(parts_.spec.n_heads, "heads"))
      current_.value_scale[head].masked_fill_(rows, value.scale);
  }

  Parts& parts_;
  std::vector<int> ids_;
  AttentionEdit current_;
};

WhatIfPass::WhatIfPass(WhatIf what_if, const ModelFiles& model, at::Device device)
    : parts_(new Parts{std::move(what_if), model.spec(), device, {}, {}, {}, {}, {}}) {
  for (std::size_t i = 0; i < parts_->what_if.size(); ++i) parts_->check(i);
  parts_->add_attention();
}

WhatIfPass::~WhatIfPass() = default;

std::unique_ptr<Interventions> WhatIfPass::lane(const std::vector<int>& token_ids) {
  parts_->token_ids.push_back(token_ids);
  return std::make_unique<Lane>(*parts_, token_ids);
}

void WhatIfPass::check_tokens() const {
  for (const Edit& edit : parts_->what_if) {
    const auto touches = [&](const std::vector<int>& ids) {
      return std::visit(
          [&](const auto& e) {
            if constexpr (requires { e.tokens; }) return !e.tokens.of(ids).empty();
            if constexpr (requires { e.keys; })
              return e.keys.members().front() < static_cast<int>(ids.size());
            return true;
          },
          edit);
    };
    if (std::none_of(parts_->token_ids.begin(), parts_->token_ids.end(), touches))
      refuse(fmt::format("{}: no position of any prompt is among its tokens", name_of(edit)));
  }
}

void WhatIfPass::prepare_norm(Role role, int layer, const std::vector<at::Tensor>& inputs,
                              const at::Tensor& gain, double eps) {
  const Place place{role, Site::resid_pre, layer};
  for (std::size_t i = 0; i < parts_->what_if.size(); ++i) {
    if (const auto by = parts_->replacements.find({i, place}); by != parts_->replacements.end()) {
      if (by->second.with == NormReplace::With::dyt)
        by->second.dyt_alpha = fit_dyt_alpha(inputs, eps);
    }
    const auto* probe = std::get_if<NormProbe>(&parts_->what_if[i]);
    if (probe == nullptr || !parts_->at_norm(probe->norms, probe->layers, role, layer)) continue;
    const bool of_output =
        probe->mode == ProbeMode::direct_const || probe->mode == ProbeMode::remove_const;
    if (!of_output && probe->mode != ProbeMode::mean) continue;
    const at::Tensor dims = parts_->dims(probe->dims);
    at::Tensor sum = at::zeros({dims.size(0)}, at::kDouble).to(parts_->device);
    double n = 0;
    for (std::size_t lane = 0; lane < inputs.size(); ++lane) {
      const at::Tensor rows = parts_->mask(probe->tokens, parts_->token_ids[lane]);
      const at::Tensor values =
          of_output ? Lane(*parts_, parts_->token_ids[lane]).norm(place, inputs[lane], gain, eps)
                    : inputs[lane];
      sum += values[0].index_select(-1, dims).to(at::kDouble).mul(rows.unsqueeze(-1)).sum(0);
      n += rows.sum().item<double>();
    }
    if (n > 0) parts_->means[{i, place}] = (sum / n).to(at::kFloat);
  }
}

void WhatIfPass::prepare_residual(Site site, int layer, const std::vector<at::Tensor>& states) {
  for (std::size_t i = 0; i < parts_->what_if.size(); ++i) {
    const auto* set = std::get_if<ResidualSet>(&parts_->what_if[i]);
    if (set == nullptr || set->how != ResidualSet::How::mean || !Lane::is_at(*set, site, layer))
      continue;
    const at::Tensor dims = parts_->dims(set->dims);
    at::Tensor sum = at::zeros({dims.size(0)}, at::kDouble).to(parts_->device);
    double n = 0;
    for (std::size_t lane = 0; lane < states.size(); ++lane) {
      const at::Tensor rows = parts_->mask(set->tokens, parts_->token_ids[lane]);
      sum += states[lane][0].index_select(-1, dims).to(at::kDouble).mul(rows.unsqueeze(-1)).sum(0);
      n += rows.sum().item<double>();
    }
    if (n > 0) parts_->means[{i, Place{Role::ln1, site, layer}}] = (sum / n).to(at::kFloat);
  }
}

}  // namespace sinkscope
