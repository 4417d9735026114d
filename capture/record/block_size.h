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
  std::int64_t largest_role = 0;  // values of the largest matrix that every token uses
};

std::vector<BlockSize> block_sizes(const ModelFiles& model);
std::int64_t head_stored_bytes(const ModelFiles& model);

// Experts of a block that some of n tokens goes to: E (1 − (1 − k/E)^n), if they choose evenly.
double reached_experts(const MoeSpec& moe, std::int64_t n_tokens);

// Tokens that are in the model together, in the largest group of prompts.
std::int64_t largest_group(const CaptureRequest& request, const ArchSpec& spec);

}  // namespace sinkscope
