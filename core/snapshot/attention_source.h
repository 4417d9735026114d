// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/snapshot/attention_snapshot.h"

namespace sinkscope {

// Where the maps of a request lie in the file.
struct AttentionPlace {
  AttentionSource source = AttentionSource::pattern;
  std::string dataset;                     // "attention/pattern" [L,H,R,C]
  std::vector<std::pair<int, int>> slots;  // of its first two dimensions: one a map
  std::vector<int> queries, keys;          // position (or first position) of each row and column
  int positions_per_cell = 1;
  std::string text;  // source_text of the snapshot
};

// Fills request.layers and .heads with all there are where they are empty, and checks them.
// Throws Error{not_found}, Error{invalid_argument}.
AttentionRequest resolved(AttentionRequest request, const RunFacts& facts);

// `request` as resolved() returns it. Errors: those of read_attention.
AttentionPlace find_attention(const CaptureReader& reader, const RunFacts& facts,
                              const AttentionRequest& request);

}  // namespace sinkscope
