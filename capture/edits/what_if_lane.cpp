// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/edits/what_if_lane.h"

#include "capture/model/forward.h"

namespace sinkscope {

at::Tensor WhatIfLane::on_residual(Site site, int layer, const at::Tensor& x) {
  at::Tensor state = x;
  for (std::size_t i = 0; i < parts_.what_if.size(); ++i) {
    if (const auto* clip = std::get_if<ResidualClip>(&parts_.what_if[i])) {
      if (!is_at_state(*clip, site, layer, parts_.spec.n_layers)) continue;
      const at::Tensor clipped = state.clamp(-clip->limit, clip->limit);
      state = clip->tokens == TokenSet()
                  ? clipped
                  : at::where(parts_.mask(clip->tokens, ids_).view({1, -1, 1}), clipped, state);
    } else if (const auto* set = std::get_if<ResidualSet>(&parts_.what_if[i])) {
      if (is_at_state(*set, site, layer, parts_.spec.n_layers))
        state = set_dims(i, *set, site, layer, state);
    }
  }
  return state;
}

NormOutput WhatIfLane::on_norm(Role role, int layer, const at::Tensor& x, const Norm& own) {
  const Place place{role, Site::resid_pre, layer};
  at::Tensor seen = x;
  for_probes(place, [&](std::size_t i, const NormProbe& probe, const ProbeTarget& target) {
    seen = probed_input(probe, target, seen, mean_of(i, place));
  });
  NormOutput out = norm(place, seen, own);
  for_probes(place, [&](std::size_t i, const NormProbe& probe, const ProbeTarget& target) {
    out.y = probed_output(probe, target, x, out.y, own.eps, mean_of(i, place));
  });
  return out;
}

const AttentionEdit* WhatIfLane::on_attention(int layer) {
  const auto found = parts_.attention.find(layer);
  if (found == parts_.attention.end()) return nullptr;
  current_ = found->second;
  for (const Edit& edit : parts_.what_if) {
    if (const auto* mask = std::get_if<AttentionMaskKey>(&edit)) lose_keys(*mask, layer);
    if (const auto* value = std::get_if<AttentionValue>(&edit)) scale_values(*value, layer);
  }
  return &current_;
}

at::Tensor WhatIfLane::on_z(int layer, const at::Tensor& z, const at::Tensor& n1) {
  at::Tensor out = z;
  for (std::size_t i = 0; i < parts_.what_if.size(); ++i) {
    const auto* gate = std::get_if<AttentionGate>(&parts_.what_if[i]);
    if (gate == nullptr || !gate->layers.contains(layer)) continue;
    const at::Tensor& weights = parts_.gates.at({i, layer});
    const at::Tensor heads =
        index_tensor(gate->heads.within(parts_.spec.n_heads, "heads"), z.device());
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

at::Tensor WhatIfLane::on_gate(int layer, const at::Tensor& gate, const at::Tensor& up,
                               Activation own) {
  const auto times_up = [&](at::Tensor act) { return up.defined() ? act.mul_(up) : act; };
  for (auto edit = parts_.what_if.rbegin(); edit != parts_.what_if.rend(); ++edit) {
    const auto* swap = std::get_if<MlpActivation>(&*edit);
    if (swap == nullptr || !swap->layers.contains(layer)) continue;
    switch (swap->kind) {
      case MlpActivation::Kind::silu:
        return gated_unit(Activation::silu, gate, up);
      case MlpActivation::Kind::sigmoid:
        return times_up(gate.sigmoid());
      case MlpActivation::Kind::gelu:
        return times_up(at::gelu(gate));
      case MlpActivation::Kind::relu:
        return times_up(at::relu(gate));
    }
  }
  return gated_unit(own, gate, up);
}

NormOutput WhatIfLane::norm(const Place& place, const at::Tensor& x, const Norm& own) const {
  for (std::size_t i = parts_.what_if.size(); i-- > 0;)
    if (const auto by = parts_.replacements.find({i, place}); by != parts_.replacements.end())
      return replaced_norm(by->second, x, own);
  return apply_norm(own, x);
}

at::Tensor WhatIfLane::mean_of(std::size_t i, const Place& place) const {
  const auto mean = parts_.means.find({i, place});
  return mean == parts_.means.end() ? at::Tensor() : mean->second;
}

at::Tensor WhatIfLane::set_dims(std::size_t i, const ResidualSet& set, Site site, int layer,
                                const at::Tensor& x) const {
  const at::Tensor dims = parts_.state_dims(set.dims), old = x.index_select(-1, dims);
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
void WhatIfLane::for_probes(const Place& place, const F& f) const {
  for (std::size_t i = 0; i < parts_.what_if.size(); ++i) {
    const auto* probe = std::get_if<NormProbe>(&parts_.what_if[i]);
    if (probe == nullptr || !parts_.at_norm(*probe, place.role, place.layer)) continue;
    f(i, *probe, ProbeTarget{parts_.mask(probe->tokens, ids_), parts_.dims(probe->dims)});
  }
}

void WhatIfLane::lose_keys(const AttentionMaskKey& mask, int layer) {
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

void WhatIfLane::scale_values(const AttentionValue& value, int layer) {
  if (!value.layers.contains(layer)) return;
  const auto T = static_cast<std::int64_t>(ids_.size()), H = std::int64_t{parts_.spec.n_heads};
  if (!current_.value_scale.defined())
    current_.value_scale = at::ones({H, T}, at::kFloat).to(parts_.device);
  const at::Tensor rows = parts_.mask(value.tokens, ids_);
  for (int head : value.heads.within(parts_.spec.n_heads, "heads"))
    current_.value_scale[head].masked_fill_(rows, value.scale);
}

}  // namespace sinkscope
