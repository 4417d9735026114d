// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "capture/engine.h"

namespace sinkscope {

// What a request will take, said before anything runs; predicted_memory() is in engine.h.

// Consecutive prompts [first, last) from `begin` on whose states fit the activation budget
// together; at least one.
std::vector<std::pair<int, int>> prompt_groups(const CaptureRequest& request, const ArchSpec& spec,
                                               int begin = 0);

// Maps that are reduced over layers: they stay in memory until the last one, for every run.
std::int64_t reduced_map_bytes(const CaptureRequest& request, int n_heads);

// Of a budget, the bytes of weights that are kept between groups of `n_tokens` tokens, see
// WeightUse::kept_bytes in record/block_size.h.
std::int64_t kept_weight_bytes(const ModelFiles& model, std::int64_t budget, RunDtype dtype,
                               std::int64_t n_tokens);

// The size of a recording's work: stored bytes of weights that all groups of prompts read, and
// floating-point operations of the forward pass. Of experts as many as tokens reach on average that
// choose them evenly.
struct PredictedWork {
  std::int64_t read_bytes = 0;
  double operations = 0;
};
PredictedWork predicted_work(const ModelFiles& model, const CaptureRequest& request);

// What this machine does in a second, found out in some milliseconds: stored bytes of this model
// read and decoded, and operations of `threads` threads.
struct MachineRates {
  double read_bytes = 0, operations = 0;
};
MachineRates measured_rates(const ModelFiles& model, int threads);

// Starting, then the longer of reading and computing, which run side by side. An estimate, for the
// CPU.
double predicted_seconds(const PredictedWork& work, const MachineRates& rates);

}  // namespace sinkscope
