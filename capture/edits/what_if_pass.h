// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/ATen.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "capture/checkpoint/model_files.h"
#include "capture/model/interventions.h"
#include "core/what_if/what_if.h"

namespace sinkscope {

struct WhatIfParts;

// One what-if made ready for one model, for all the prompts it is tried on. The forward pass of
// every prompt goes through a Lane of its own; prompts advance together, half a block at a time, so
// that means over all of them exist before anybody needs them: prepare_* comes first, then the
// lanes.
class WhatIfPass {
 public:
  // Throws Error: invalid_argument for an edit that cannot take effect (a layer, head, dimension,
  // site or norm that this model lacks; a position in none of the runs), not_found and corrupt for
  // weight files.
  WhatIfPass(WhatIf what_if, const ModelFiles& model, at::Device device);
  ~WhatIfPass();

  // One prompt; its ids say which positions are edited.
  std::unique_ptr<Interventions> lane(const std::vector<int>& token_ids);
  // Means of residual.set are over these prompts instead of the lanes'.
  void calibrate_with(std::vector<std::vector<int>> token_ids);
  // To be called once all lanes are there: an edit whose positions are in no run is an error, and
  // so is a mean over positions that no calibration prompt has.
  void check_tokens() const;

  // The inputs of a norm in all lanes, in the order in which the lanes were made; each [1, T, D].
  void prepare_norm(Role role, int layer, const std::vector<at::Tensor>& inputs, const Norm& norm);
  // The same for a residual state, before it is edited; of the calibration prompts where there are
  // some.
  void prepare_residual(Site site, int layer, const std::vector<at::Tensor>& states);

 private:
  std::unique_ptr<WhatIfParts> parts_;
};

}  // namespace sinkscope
