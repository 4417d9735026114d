// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/sink_report.h"
#include "core/what_if/outliers.h"
#include "core/what_if/what_if.h"

namespace sinkscope {

// Before and after travel together.
template <class T>
struct Compared {
  T baseline{};
  T edited{};
};

// Where one edit of a what-if was made; what an edit does not choose is empty.
struct Touched {
  std::string edit;                      // "residual.set"
  std::vector<std::vector<int>> tokens;  // of each run, ascending; empty = not by token
  std::optional<IndexSet> dims, layers, heads, keys;
  NameList places;            // sites or norms as the edit names them; empty = all it has
  bool skips_linear = false;  // `layers` are those of the edit's that have softmax attention
};
// `attention_layers`: blocks with softmax attention, of `n_layers`.
std::vector<Touched> touched_by(const WhatIf& what_if,
                                const std::vector<std::vector<int>>& token_ids,
                                const std::vector<int>& attention_layers, int n_layers);

// ‖edited − baseline‖ / ‖baseline‖ of the final norm's output, position by position.
struct StateChange {
  double mean = 0, largest = 0;
  int largest_run = 0, largest_token = 0;
};

// One quantity of a sink report on both sides, cell by cell; NaN = not there on this side.
struct ComparedQuantity {
  Quantity shape;  // values empty
  Compared<std::vector<double>> values;
};

// One run and its twin.
struct RunOutcome {
  int number = 0;  // 3 is run3
  int n_tokens = 0;
  Compared<double> loss;   // mean over positions 1 … T−1; NaN without a head
  std::vector<double> kl;  // [T−1] KL(baseline ‖ edited) of the next token; empty without a head
  std::vector<ComparedQuantity> quantities;
};

// What an edit did: read from a capture that holds runs and their twins.
struct WhatIfOutcome {
  std::string model;
  std::string baseline_file;  // where the baselines are, if in another capture
  WhatIf what_if;
  std::vector<Touched> touched;  // by each edit
  int n_runs = 0;
  std::int64_t n_tokens = 0;  // over all runs
  int n_with_bos = 0;         // prompts that begin with a BOS token
  Compared<double> loss;      // mean over positions 1 … T−1 of all runs; NaN without a head
  // Without a head there is no loss and no KL; where the final norm is recorded, this is there.
  bool has_head = true;
  std::optional<StateChange> state_change;
  double kl_mean = 0, kl_max = 0;        // over positions 0 … T−2 of all runs
  int kl_max_run = 0, kl_max_token = 0;  // the run by its number in the file: 3 is run3
  // Every scalar of a sink report, and of what is one number a layer, site or tensor the largest of
  // a run (".largest"): means over the runs that have a value, each run counting once.
  std::vector<std::pair<std::string, Compared<double>>> metrics;
  // Every quantity cell by cell, the same means: per layer, per head, per site, per tensor.
  std::vector<ComparedQuantity> tables;
  std::vector<int> attention_layers;        // rows of the tables by layer and head
  std::vector<std::string> sites, tensors;  // rows of the others
  Compared<Outliers> outliers;              // where they are, of all runs
  std::vector<RunOutcome> runs;
};

// `edit`: the how-manieth twin of every run. Runs without one are left out. Baselines in another
// capture are read there. Throws Error{not_found} when no run has one, and what open_baseline does.
// `baseline`: the sink report of the baselines, all of them, where somebody has it already.
WhatIfOutcome what_if_outcome(const CaptureReader& reader, int edit, const SinkOptions& options,
                              const SinkReport* baseline = nullptr);

// Schema "sinkscope.whatif/1".
nlohmann::ordered_json outcome_json(const WhatIfOutcome& outcome);
std::string outcome_text(const WhatIfOutcome& outcome);
// One number a row: run,quantity,layer,head,site,token,baseline,edited. Of every run ("run3"), and
// of all together ("all": loss and KL over all positions, the others means over the runs).
std::string outcome_csv(const WhatIfOutcome& outcome);

}  // namespace sinkscope
