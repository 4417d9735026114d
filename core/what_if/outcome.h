// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/sink_report.h"
#include "core/what_if/what_if.h"

namespace sinkscope {

// Before and after travel together.
template <class T>
struct Compared {
  T baseline{};
  T edited{};
};

// What an edit did: read from a capture that holds runs and their twins.
struct WhatIfOutcome {
  std::string model;
  WhatIf what_if;
  int n_runs = 0;
  std::int64_t n_tokens = 0;  // over all runs
  bool has_bos = false;       // every prompt begins with a BOS token
  Compared<double> loss;      // mean over positions 1 … T−1 of all runs; NaN without a head
  double kl_mean = 0, kl_max = 0;  // over positions 0 … T−2 of all runs
  int kl_max_run = 0, kl_max_token = 0;
  std::vector<std::pair<std::string, Compared<double>>> metrics;  // every scalar of a sink report
  std::vector<std::string> sites;
  Compared<std::vector<Peak>>
      peaks;  // [S] of the first run: where the outlier is, before and after
};

// `edit`: the how-manieth twin of every run. Runs without one are left out. Throws
// Error{not_found} when no run has one.
WhatIfOutcome what_if_outcome(const CaptureReader& reader, int edit, const SinkOptions& options);

// Schema "sinkscope.whatif/1".
nlohmann::ordered_json outcome_json(const WhatIfOutcome& outcome);
std::string outcome_text(const WhatIfOutcome& outcome);

}  // namespace sinkscope
