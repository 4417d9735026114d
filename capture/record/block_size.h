// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <vector>

#include "capture/engine.h"

namespace sinkscope {

// Weights of a block: values, and the bytes that they take in the files. What every token uses, and
// one expert.
struct BlockSize {
  std::int64_t values = 0, stored = 0;
  std::int64_t expert_values = 0, expert_stored = 0;
  // Values that are float32 together while a block of a narrower type is read, at most.
  std::int64_t read_at_once = 0;
  std::int64_t largest_role = 0;  // values of the largest matrix that every token uses
};

std::vector<BlockSize> block_sizes(const ModelFiles& model);

// The blocks as a recording with groups of so many tokens uses them: what every token uses, the
// experts that its tokens reach, and what stays in memory between groups.
struct BlockUse {
  std::int64_t values = 0, stored = 0;
  std::int64_t expert_values = 0, expert_stored = 0;  // of the reached ones together
  std::int64_t kept = 0, kept_experts = 0;            // values of these that are kept
};
struct WeightUse {
  std::vector<BlockUse> blocks;
  std::int64_t all = 0;           // values of all blocks with their reached experts
  std::int64_t two = 0;           // of the two consecutive blocks that are largest, without experts
  std::int64_t most_experts = 0;  // of the reached experts of one block
  std::int64_t read_at_once = 0, largest_role = 0;  // as above, of any block
  // Of the budget, the bytes that are kept: all of it where everything fits, else what the two
  // blocks leave that are in memory while one is read ahead of the other; not below 0.
  std::int64_t kept_bytes = 0;
};
// Whole blocks are kept in order, then as many of their experts as there is room for.
WeightUse weight_use(const ModelFiles& model, std::int64_t budget, RunDtype dtype,
                     std::int64_t n_tokens);
std::int64_t item_bytes(RunDtype dtype);
std::int64_t head_stored_bytes(const ModelFiles& model);

// Experts of a block that some of n tokens goes to: E (1 − (1 − k/E)^n), if they choose evenly.
double reached_experts(const MoeSpec& moe, std::int64_t n_tokens);

// Tokens that are in the model together, in the largest group of prompts.
std::int64_t largest_group(const CaptureRequest& request, const ArchSpec& spec);

}  // namespace sinkscope
