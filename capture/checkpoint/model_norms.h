// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "capture/checkpoint/model_files.h"
#include "core/capture_layout.h"

namespace sinkscope {

// One role's norms with the tensors they come from.
struct NamedNorms {
  NormFacts facts;
  std::vector<std::string> tensors;  // [N] names in the file, beside facts.layers
};

struct ModelNorms {
  std::vector<NamedNorms> roles;    // ln1, ln2, their post norms, q_norm, k_norm, ln_final,
                                    // where there are any
  std::vector<std::string> unread;  // "blk.3.attn_norm.weight: …", one a norm that cannot be read
};

// Reads every norm weight of a model and nothing else; one that cannot be decoded is left out and
// named. Where norms of a role have unequal widths (Gemma 4's q_norm), rows are as long as the
// widest, with NaN behind a narrower norm's gains. Without a config, eps and offset are NaN: not
// known, and gains are as stored.
ModelNorms read_norms(const ModelFiles& model);

}  // namespace sinkscope
