// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

#include "core/rescale/report.h"

namespace sinkscope {

// Where the evidence about norms comes from.
struct NormSource {
  const CaptureReader& reader;
  const std::string& run;
  const ModelFacts& model;
  const WeightRows& weights;  // of the linear layers behind a norm; may be empty
};

// Fills `norms` and what could not be computed of a report whose options and n_tokens are set.
// Throws Error{corrupt} for norms and statistics that contradict the model.
void add_norm_evidence(const NormSource& source, RescaleReport& report);

}  // namespace sinkscope
