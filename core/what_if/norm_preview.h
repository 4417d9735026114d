// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "core/capture_reader.h"
#include "core/tensor.h"
#include "core/what_if/what_if.h"

namespace sinkscope {

// One RMSNorm with its input as it was recorded: what a slider needs to show an edit at once. The
// input is that of the model as it is; what edits of earlier layers would do to it needs a rerun.
struct NormInput {
  std::string role;                // "ln1", "ln2", "ln_final"
  int layer = -1;                  // −1 for ln_final
  std::vector<std::string> sites;  // states between which and the norm nothing happens, in order
  MatrixF x;                       // [T, D] the stream in front of the norm, before any PreAffine
  std::vector<float> gain, pre_gain;  // [D] effective gain; pre_gain may be empty
  double eps = 0;
  std::vector<int> token_ids;  // [T]
};

// The norm of a run with a recorded stream. Throws Error: not_found without such a norm or stream,
// unsupported for another kind than RMSNorm, corrupt.
NormInput read_norm_input(const CaptureReader& reader, const std::string& run,
                          const std::string& role, int layer);

// Whether an edit changes what this norm reads or does.
bool touches_norm(const Edit& edit, const NormInput& input);

// y [T, D], y = x / √(mean(x²) + ε) · gain, with λ₁ ⊙ x for x where there is a PreAffine.
MatrixF norm_output(const NormInput& input);

// The same under the edits that touch it, as a forward pass applies them: the stream is edited,
// probes change what the norm sees, the last replacement takes its place, probes change the output.
// Means are over the edited tokens of this run. Throws Error{unsupported} for what a recording
// cannot show: weights of a file, DyT's fitted α.
MatrixF previewed_norm(const NormInput& input, const WhatIf& what_if);

// √(mean over dimensions of y²) of each token.
std::vector<double> row_rms(const MatrixF& y);

}  // namespace sinkscope
