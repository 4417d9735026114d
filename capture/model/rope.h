// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

#include "capture/checkpoint/arch_spec.h"

namespace sinkscope {

// Inverse frequencies f_i [rotary_dim/2] as used, and the factor m on cos and sin (1 but for yarn
// and longrope).
struct RopeFrequencies {
  std::vector<float> inverse;
  float attention_scaling = 1;
};

// f_i = base^(−2i/n) and its scalings (linear, dynamic NTK, llama3, yarn, longrope, proportional)
// as transformers defines them. `seq_len` matters for dynamic and longrope. `divisors` [n/2] or
// empty: GGUF's rope_freqs. Throws Error{corrupt} when the divisors' length does not fit.
RopeFrequencies rope_frequencies(const RopeSpec& rope, int n_ctx, int seq_len,
                                 const std::vector<float>& divisors = {});

}  // namespace sinkscope
