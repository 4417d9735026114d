// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "core/capture_layout.h"

namespace sinkscope {

// Two models of one vocabulary on the same tokens: how far the second's next-token distribution is
// from the first's. KL(A ‖ B) = Σ_v p_A(v) ln(p_A(v) / p_B(v)), nats, of the distribution after
// positions 0 … T−2 (those with a next token); loss = −ln p of that next token.

struct RunDivergence {
  RunInput input;
  std::vector<float> loss_a, loss_b;  // [T−1]
  std::vector<float> kl;              // [T−1]
};

struct ModelDivergence {
  std::string model_a, model_b;
  std::vector<RunDivergence> runs;
};

// Over the finite values of some runs; NaN where there is none.
struct DivergenceSummary {
  std::int64_t n_positions = 0;  // finite or not
  double mean_kl = 0, max_kl = 0;
  int max_run = -1, max_token = -1;  // where the largest is, the first of equals; −1 = nowhere
  double mean_loss_a = 0, mean_loss_b = 0;
};
DivergenceSummary summary_of(std::span<const RunDivergence> runs);

// Schema "sinkscope.compare_kl/1".
nlohmann::ordered_json divergence_json(const ModelDivergence& divergence);
// A row a position.
std::string divergence_csv(const ModelDivergence& divergence);
std::string divergence_text(const ModelDivergence& divergence);

}  // namespace sinkscope
