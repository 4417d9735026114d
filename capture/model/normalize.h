// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/ATen.h>

#include "core/normalizer.h"

namespace sinkscope {

// The tensor twin of core's normalize(): over the last dimension of scores [..., n], −∞ where
// masked. `null_mass` [...] as there.
struct NormalizedScores {
  at::Tensor p, null_mass;
};
NormalizedScores normalize(const Normalizer& normalizer, const at::Tensor& scores);

}  // namespace sinkscope
