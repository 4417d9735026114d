// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/edits/what_if_pass.h"

#include <fmt/format.h>

#include <algorithm>

#include "capture/edits/what_if_lane.h"
#include "core/error.h"

namespace sinkscope {

WhatIfPass::WhatIfPass(WhatIf what_if, const ModelFiles& model, at::Device device)
    : parts_(new WhatIfParts{std::move(what_if), model.spec(), device, {}, {}, {}, {}, {}}) {
  parts_->prepare();
}

WhatIfPass::~WhatIfPass() = default;

std::unique_ptr<Interventions> WhatIfPass::lane(const std::vector<int>& token_ids) {
  parts_->token_ids.push_back(token_ids);
  return std::make_unique<WhatIfLane>(*parts_, token_ids);
}

void WhatIfPass::check_tokens() const {
  for (const Edit& edit : parts_->what_if) {
    const auto touches = [&](const std::vector<int>& ids) {
      return std::visit(
          [&](const auto& e) {
            if constexpr (requires { e.tokens; }) return !e.tokens.of(ids).empty();
            if constexpr (requires { e.keys; })
              return e.keys.members().back() < static_cast<int>(ids.size());
            return true;
          },
          edit);
    };
    if (std::none_of(parts_->token_ids.begin(), parts_->token_ids.end(), touches))
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("{}: no position of any prompt is among its tokens", name_of(edit)));
  }
}

void WhatIfPass::prepare_norm(Role role, int layer, const std::vector<at::Tensor>& inputs,
                              const Norm& norm) {
  const Place place{role, Site::resid_pre, layer};
  for (std::size_t i = 0; i < parts_->what_if.size(); ++i) {
    if (const auto by = parts_->replacements.find({i, place}); by != parts_->replacements.end()) {
      if (by->second.with == NormReplace::With::dyt)
        by->second.dyt_alpha = fit_dyt_alpha(inputs, norm.eps);
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
          of_output ? WhatIfLane(*parts_, parts_->token_ids[lane]).norm(place, inputs[lane], norm).y
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
    if (set == nullptr || set->how != ResidualSet::How::mean || !is_at_state(*set, site, layer))
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
