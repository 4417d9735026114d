// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <vector>

#include "capture/engine.h"
#include "core/what_if/probe_table.h"

namespace sinkscope {

// What `sinkscope probe` and the window's button do, on the caller's thread.

// The outlier of these prompts: the residual sink that holds at most sites, else the dimension that
// is massive at most sites. Records their statistics into a file that goes again. Canceled:
// nullopt. Throws Error{invalid_argument} when there is none, and those of record_capture.
std::optional<std::vector<int>> find_outlier_dims(const ModelFiles& model, CaptureRequest request,
                                                  JobContext job);

struct ProbePlan {
  std::vector<PositionFilter> positions;
  std::vector<ProbeMode> modes;
  bool each = false;  // every norm alone as well
};

// Model, tokens and rows of a table: what makes sense for this model and these prompts. Readers
// whose norms it has, no "denominator" where its norms have none of their own (LayerNorm), no means
// over a single position. Throws Error{invalid_argument} when nothing is left, or no prompt has a
// next token; Error{unsupported} when only "denominator" was asked of LayerNorms.
void plan_probes(const ArchSpec& spec, const std::vector<RunInput>& runs, ProbePlan plan,
                 ProbeTable& table);

// All of them.
std::vector<ProbeMode> all_probe_modes();

// Measures the table's rows: loss of the model, and of each row its rise and KL. `request` without
// variants. Canceled: false. Throws those of Engine::evaluate.
bool measure_probes(const ModelFiles& model, EvaluateRequest request, ProbeTable& table,
                    JobContext job);

// How a capture request runs, for the same prompts under many variants.
EvaluateRequest evaluate_like(const CaptureRequest& request);

}  // namespace sinkscope
