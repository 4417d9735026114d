// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "capture/edits/what_if_parts.h"

namespace sinkscope {

// One prompt of a what-if on its way through the model.
class WhatIfLane final : public Interventions {
 public:
  WhatIfLane(WhatIfParts& parts, const std::vector<int>& token_ids)
      : parts_(parts), ids_(token_ids) {}

  at::Tensor on_residual(Site site, int layer, const at::Tensor& x) override;

  NormOutput on_norm(Role role, int layer, const at::Tensor& x, const Norm& norm) override;

  const AttentionEdit* on_attention(int layer) override;

  at::Tensor on_z(int layer, const at::Tensor& z, const at::Tensor& n1) override;

  at::Tensor on_gate(int layer, const at::Tensor& gate, const at::Tensor& up,
                     Activation own) override;

  // Of the norm as it stands in this what-if, without probes.
  NormOutput norm(const Place& place, const at::Tensor& x, const Norm& norm) const;

 private:
  at::Tensor mean_of(std::size_t i, const Place& place) const;

  at::Tensor set_dims(std::size_t i, const ResidualSet& set, Site site, int layer,
                      const at::Tensor& x) const;

  template <class F>
  void for_probes(const Place& place, const F& f) const;

  void lose_keys(const AttentionMaskKey& mask, int layer);

  void scale_values(const AttentionValue& value, int layer);

  WhatIfParts& parts_;
  std::vector<int> ids_;
  AttentionEdit current_;
};

}  // namespace sinkscope
