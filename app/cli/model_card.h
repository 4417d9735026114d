// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "capture/checkpoint/model_files.h"

namespace sinkscope {

// All tensors of one stored type.
struct DtypeRow {
  std::string dtype;
  std::int64_t n_tensors = 0, n_elements = 0, n_bytes = 0;
  bool readable = true;
};

// What can be said of a model without reading a weight.
struct ModelCard {
  ArchSpec spec;
  Container container = Container::safetensors;
  std::string path;
  // The family is one this program knows. Where not, spec's details are defaults: they are not
  // shown.
  bool is_known_family = false;
  std::string head_dim_source;   // "config", "inferred"
  std::vector<DtypeRow> dtypes;  // most bytes first
  std::int64_t n_tensors = 0, n_parameters = 0, n_bytes = 0;
  std::string tokenizer;         // its name; empty where it cannot be read
  std::string tokenizer_reason;  // then: why
  int tokenizer_vocab = 0, bos_id = -1;
  std::string bos_piece;
  bool adds_bos = false;
  std::vector<std::string> warnings, obstacles;
};

ModelCard model_card(const ModelFiles& model);
std::string card_text(const ModelCard& card);
nlohmann::ordered_json card_json(const ModelCard& card);

}  // namespace sinkscope
