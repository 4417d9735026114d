// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/edits/what_if_pass.h"

#include <fmt/format.h>

#include <algorithm>

#include "capture/edits/what_if_lane.h"
#include "core/error.h"

namespace sinkscope {
namespace {

// Of some dimensions over some rows of several prompts, in double.
struct MaskedMean {
  explicit MaskedMean(at::Tensor of) : dims(std::move(of)) {
    sum = at::zeros({dims.size(0)}, dims.options().dtype(at::kDouble));
  }
  void add(const at::Tensor& x, const at::Tensor& rows) {  // [T, D], [T] bool
    sum += x.index_select(-1, dims).to(at::kDouble).mul(rows.unsqueeze(-1)).sum(0);
    n += rows.sum().item<double>();
  }
  at::Tensor value() const { return (sum / n).to(at::kFloat); }

  at::Tensor dims, sum;
  double n = 0;
};

}  // namespace

WhatIfPass::WhatIfPass(WhatIf what_if, const ModelFiles& model, at::Device device)
    : parts_(new WhatIfParts{std::move(what_if), model, model.spec(), device}) {
  parts_->prepare();
}

WhatIfPass::~WhatIfPass() = default;

std::unique_ptr<Interventions> WhatIfPass::lane(const std::vector<int>& token_ids) {
  parts_->token_ids.push_back(token_ids);
  return std::make_unique<WhatIfLane>(*parts_, token_ids);
}

void WhatIfPass::calibrate_with(std::vector<std::vector<int>> token_ids) {
  parts_->calibration_ids = std::move(token_ids);
}

namespace {

[[noreturn]] void refuse(const Edit& edit, const std::string& why) {
  throw Error(ErrorKind::invalid_argument, fmt::format("{}: {}", name_of(edit), why));
}

// How many positions of the prompts a set has.
std::size_t count(const TokenSet& tokens, const std::vector<std::vector<int>>& prompts) {
  std::size_t n = 0;
  for (const auto& ids : prompts) n += tokens.of(ids).size();
  return n;
}

// Every position and key that an edit lists is somewhere, and is seen by somebody.
void require_touch(const Edit& edit, const std::vector<std::vector<int>>& prompts,
                   const char* whose, bool sees_later_keys) {
  std::size_t longest = 0;
  for (const auto& ids : prompts) longest = std::max(longest, ids.size());
  const auto n = static_cast<int>(longest);
  std::visit(
      [&](const auto& e) {
        if constexpr (requires { e.tokens; }) {
          if (e.tokens.last_listed() >= n)
            refuse(edit, fmt::format("position {} is in no {}: the longest has {} tokens",
                                     e.tokens.last_listed(), whose, n));
          if (count(e.tokens, prompts) == 0)
            refuse(edit, fmt::format("no position of any {} is among its tokens", whose));
        }
        if constexpr (requires { e.keys; }) {
          const int last = e.keys.members().back();
          if (last >= n)
            refuse(edit,
                   fmt::format("key {} is in no {}: the longest has {} tokens", last, whose, n));
          if (last == n - 1 && !sees_later_keys)
            refuse(edit,
                   fmt::format("key {} is seen by no other query: the longest {} has {} tokens",
                               last, whose, n));
        }
      },
      edit);
}

}  // namespace

void WhatIfPass::check_tokens() const {
  for (const Edit& edit : parts_->what_if) {
    require_touch(edit, parts_->token_ids, "prompt", parts_->spec.bidirectional);
    if (const auto* probe = std::get_if<NormProbe>(&edit);
        probe != nullptr &&
        (probe->mode == ProbeMode::mean || probe->mode == ProbeMode::direct_const) &&
        count(probe->tokens, parts_->token_ids) == 1)
      refuse(edit, "the mean is over a single position, which it leaves as it is: more prompts");
    const auto* set = std::get_if<ResidualSet>(&edit);
    if (set == nullptr || set->how != ResidualSet::How::mean) continue;
    if (!parts_->calibration_ids.empty())
      require_touch(edit, parts_->calibration_ids, "calibration prompt",
                    parts_->spec.bidirectional);
    else if (count(set->tokens, parts_->token_ids) == 1)
      refuse(edit,
             "the mean is over a single position, which it leaves as it is: more prompts, or "
             "--calibration");
  }
}

void WhatIfPass::prepare_norm(Role role, int layer, const std::vector<at::Tensor>& inputs,
                              const Norm& norm) {
  const Place place{role, Site::resid_pre, layer};
  for (std::size_t i = 0; i < parts_->what_if.size(); ++i) {
    if (const auto by = parts_->replacements.find({i, place}); by != parts_->replacements.end()) {
      if (by->second.with == NormReplace::With::dyt)
        by->second.dyt_alpha = fit_dyt_alpha(inputs, norm);
    }
    const auto* probe = std::get_if<NormProbe>(&parts_->what_if[i]);
    if (probe == nullptr || !parts_->at_norm(*probe, role, layer)) continue;
    const bool of_output =
        probe->mode == ProbeMode::direct_const || probe->mode == ProbeMode::remove_const;
    if (!of_output && probe->mode != ProbeMode::mean) continue;
    MaskedMean mean(parts_->dims(probe->dims));
    for (std::size_t lane = 0; lane < inputs.size(); ++lane) {
      const at::Tensor rows = parts_->mask(probe->tokens, parts_->token_ids[lane]);
      const at::Tensor values =
          of_output ? WhatIfLane(*parts_, parts_->token_ids[lane]).norm(place, inputs[lane], norm).y
                    : inputs[lane];
      mean.add(values[0], rows);
    }
    if (mean.n > 0) parts_->means[{i, place}] = mean.value();
  }
}

void WhatIfPass::prepare_residual(Site site, int layer, const std::vector<at::Tensor>& states) {
  const auto& token_ids =
      parts_->calibration_ids.empty() ? parts_->token_ids : parts_->calibration_ids;
  for (std::size_t i = 0; i < parts_->what_if.size(); ++i) {
    const auto* set = std::get_if<ResidualSet>(&parts_->what_if[i]);
    if (set == nullptr || set->how != ResidualSet::How::mean ||
        !is_at_state(*set, site, layer, parts_->spec.n_layers))
      continue;
    MaskedMean mean(parts_->state_dims(set->dims));
    for (std::size_t lane = 0; lane < states.size(); ++lane)
      mean.add(states[lane][0], parts_->mask(set->tokens, token_ids[lane]));
    if (mean.n > 0) parts_->means[{i, Place{Role::ln1, site, layer}}] = mean.value();
  }
}

}  // namespace sinkscope
