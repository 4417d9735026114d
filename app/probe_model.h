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

// The rows that make sense for this model: readers whose norms it has, and no "denominator" where
// its norms have none of their own (LayerNorm).
std::vector<ProbeRow> probes_of(const ArchSpec& spec, bool each,
                                const std::vector<PositionFilter>& positions,
                                std::vector<ProbeMode> modes);

// All of them.
std::vector<ProbeMode> all_probe_modes();

// Measures the table's rows: loss of the model, and of each row its rise and KL. `request` without
// variants. Canceled: false. Throws those of Engine::evaluate.
bool measure_probes(const ModelFiles& model, EvaluateRequest request, ProbeTable& table,
                    JobContext job);

// How a capture request runs, for the same prompts under many variants.
EvaluateRequest evaluate_like(const CaptureRequest& request);

}  // namespace sinkscope
