// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

#include "core/rescale/report.h"

namespace sinkscope {

// Where the evidence about attention comes from.
struct HeadSource {
  const CaptureReader& reader;
  const std::string& run;
  const ModelFacts& model;
  const WeightRows& weights;  // of W_o; may be empty
};

// Fills `heads`, `queries` and what could not be computed of a report whose options and n_tokens
// are set.
void add_head_evidence(const HeadSource& source, RescaleReport& report);

}  // namespace sinkscope
