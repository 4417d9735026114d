// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "core/capture_layout.h"

namespace sinkscope {

// What makes two runs differ before their numbers do, one sentence each, added to `notes`.
// `title_a`, `title_b` tell them apart in it.

// Names and weights; of a model that was not run the weights have no fingerprint.
void note_models(const ModelFacts& a, const std::string& title_a, const ModelFacts& b,
                 const std::string& title_b, std::vector<std::string>& notes);

// Tokens, lengths, BOS.
void note_inputs(const RunInput& a, const std::string& title_a, const RunInput& b,
                 const std::string& title_b, std::vector<std::string>& notes);

}  // namespace sinkscope
