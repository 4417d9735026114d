// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "capture/checkpoint/arch_spec.h"
#include "capture/checkpoint/block_scale.h"

namespace sinkscope {

struct Family;

// What a Hugging Face config.json says, translated. The tensors have not been asked yet: see
// assign_hf_roles, which fills in what only they know.
struct HfConfig {
  ArchSpec spec;                         // head_dim 0: not said, take it from q_proj's rows
  bool is_known_family = false;          // the forward pass knows this model_type
  bool is_wrapped = false;               // a language model inside one for pictures or sound
  const Family* family = nullptr;        // its tables; null for an unknown one
  std::optional<bool> tied;              // tie_word_embeddings
  std::vector<std::string> layer_types;  // as config.json says, or empty
  int n_extra_layers = 0;                // blocks after the last that only predict further tokens
  bool says_bos = false, says_eos = false;  // the ids stand in config.json itself
  QuantizationHint quantization;
  std::vector<std::string> obstacles, warnings;
};

// Translates both spellings: transformers 4 (rope_theta + rope_scaling, torch_dtype) and 5
// (rope_parameters, dtype). `where` is the file's path for messages. Absent keys take the defaults
// of transformers for that family. Unknown families, activations and rope kinds become obstacles.
// Throws Error{corrupt} for text that is not JSON and for values of an impossible type or size.
HfConfig parse_hf_config(const std::string& text, const std::string& where);

// Fills in bos_id and eos_id from generation_config.json where config.json has none.
void add_generation_config(HfConfig& config, const std::string& text, const std::string& where);

}  // namespace sinkscope
