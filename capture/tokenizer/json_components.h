// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "capture/tokenizer/added_tokens.h"
#include "capture/tokenizer/pre_tokenizer.h"

namespace sinkscope {

// The components of a tokenizer.json, read one by one. A component that is not understood throws
// Error{unsupported} by its name; JSON of another shape than expected throws
// nlohmann::json::exception.

Normalizer read_normalizer(const nlohmann::json& component);

struct PreTokenizerRead {
  PreTokenizer pre_tokenizer;
  std::string family;  // the name of the SplitRule it equals, or "custom"
};
PreTokenizerRead read_pre_tokenizer(const nlohmann::json& component);

// Ids that a template puts around one sequence.
struct PostProcessorRead {
  bool has_template = false;
  std::vector<int> prefix, suffix;
};
PostProcessorRead read_post_processor(const nlohmann::json& component);

std::vector<AddedToken> read_added_tokens(const nlohmann::json& list);

}  // namespace sinkscope
