// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/json_numbers.h"
#include "core/mechanisms.h"

// What `sinks` says about live mechanisms, in its three forms. Nothing where a model has none.
namespace sinkscope {

// {"norm_gates":[{role, layer, mean, min, min_dim, max, max_dim, corr}],
//  "attention_gate":{layers, mean[[…]]}, "sink_share":{layers, mean[[…]]},
//  "depth":{block_layers, mixes:[{target, layer, mean[…], top1, effective_branches, embedding,
//  newest, concentrated}]}, "linear_attention":{layers, state_norm[[…]], last_state_norm[[…]]}}
nlohmann::ordered_json mechanisms_json(const Mechanisms& mechanisms, JsonNumbers& numbers);

// Sections for a terminal, each with its convention.
std::string mechanisms_text(const Mechanisms& mechanisms, int n_layers);

// One number a row of the CSV: quantity, layer (−1 = none), head, site, dim, value.
struct MechanismRow {
  std::string quantity;
  int layer = -1, head = -1;
  std::string site;
  int dim = -1;
  double value = 0;
};
std::vector<MechanismRow> mechanism_rows(const Mechanisms& mechanisms);

// What the numbers mean, by their names in the JSON.
std::vector<std::pair<std::string, std::string>> mechanism_conventions(
    const Mechanisms& mechanisms);

}  // namespace sinkscope
