// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "capture/tokenizer/added_tokens.h"
#include "capture/tokenizer/pre_tokenizer.h"
#include "capture/tokenizer/text_normalizer.h"
#include "capture/tokenizer/tokenizer.h"

namespace sinkscope {

// The components of a tokenizer.json, read one by one. A component that is not understood throws
// Error{unsupported} by its name; JSON of another shape than expected throws
// nlohmann::json::exception.

TextNormalizer read_normalizer(const nlohmann::json& component);

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

// A whole number that fits an int. Throws Error{corrupt} for anything else, 3.0 and 1e40 included.
int json_int(const nlohmann::json& value, const char* what);

// A special token of tokenizer_config.json: a string or {"content": …}; "" where there is none.
std::string json_token(const nlohmann::json& config, const char* name);
// Whether the object has that key and it says true.
bool json_flag(const nlohmann::json& object, const char* name);

// tokenizer_config.json in the folder; an empty object where there is none. Throws as
// parse_json_file, and Error{corrupt} where it is no object.
nlohmann::json read_tokenizer_config(const std::filesystem::path& folder);

// The tokenizer a parsed tokenizer.json describes. Throws Error: corrupt, unsupported.
std::unique_ptr<Tokenizer> read_json_tokenizer(const nlohmann::json& json,
                                               const nlohmann::json& config,
                                               const std::string& where);

}  // namespace sinkscope
