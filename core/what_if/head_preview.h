// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "core/capture_reader.h"
#include "core/tensor.h"
#include "core/what_if/what_if.h"

namespace sinkscope {

// One head with its weights as they were recorded: enough to put another normalizer in place or to
// drop keys, because ln p + lse gives the scores back.
struct HeadInput {
  int layer = 0, head = 0;
  MatrixF pattern;  // [n, n] p_ij of queries and keys 0 … n−1; 0 where not visible
  std::vector<double> lse, null;  // [n] ln Σ_j exp(s_ij), and the share that goes to no key
  std::vector<float> value_norm;  // [n] ‖v_j‖₂; empty = not recorded
  std::vector<int> token_ids;     // [seq_len]
  int seq_len = 0;                // of the run; n is smaller where only the window is recorded
};

// From the recorded map of up to 4,096 tokens, else from the exact first 64 × 64 cells. Throws
// Error: not_found for a layer or head that is not there, corrupt.
HeadInput read_head_input(const CaptureReader& reader, const std::string& run, int layer, int head);

// Whether an edit changes this head's weights.
bool touches_head(const Edit& edit, int layer, int head);
// Whether it changes what the head writes and not those: its values, or a gate.
bool touches_output(const Edit& edit, int layer, int head);

struct HeadPreview {
  MatrixF pattern;           // [n, n]
  std::vector<double> null;  // [n]
};
// The weights under the edits that touch the head; scores as recorded. A row of softmax weights u
// and its lse give every normalizer: softmax1 is u · sigmoid(lse), and so on (core/normalizer.h).
HeadPreview previewed_head(const HeadInput& input, const WhatIf& what_if);

// p_ij ‖v_j‖ [n, n] of these weights under the edits that touch the head's output: how long each
// key's addend of z is. Values are scaled token by token, a constant gate scales all. Throws
// Error{unsupported} for a gate's weights, and where no value norms are recorded.
MatrixF addend_lengths(const HeadInput& input, const WhatIf& what_if, const MatrixF& pattern);

// Σ over queries of what each key receives, [n].
std::vector<double> column_sums(const MatrixF& pattern);

}  // namespace sinkscope
