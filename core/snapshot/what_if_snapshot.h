// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "core/snapshot/compare_snapshot.h"
#include "core/snapshot/prepared_comparison.h"
#include "core/snapshot/preview_snapshot.h"
#include "core/snapshot/run_facts.h"
#include "core/what_if/edit_list.h"
#include "core/what_if/outcome.h"

namespace sinkscope {

// What a rerun of a model under edits has shown: a capture with a run and its twin.
struct WhatIfResult {
  std::string path;  // of the capture
  RunFacts before, after;
  WhatIfOutcome outcome;
  std::vector<double> kl;  // [T−1] KL(before ‖ after) of the next token, nats; empty without a head
  std::string outlier_text;  // where the largest |x| and the sinks were, and where they are now
};

// Of the capture's first run and its first twin. `baseline`: the sink report of that run where it
// is known already. Throws Error{not_found} without a twin, and what the sink report throws.
WhatIfResult read_what_if_result(const CaptureReader& reader, const SinkReport* baseline = nullptr);

// One line of the table of numbers.
struct OutcomeLine {
  std::string name;
  double before = 0, after = 0;  // NaN = is not there on this side
};
// Loss, perplexity, KL (after only), then every scalar of a sink report.
std::vector<OutcomeLine> outcome_lines(const WhatIfOutcome& outcome);

// What is laid side by side: a head's attention map, or a residual state.
struct BeforeAfterRequest {
  MapKind kind = MapKind::attention;
  int layer = 0, head = 0;
  bool operator==(const BeforeAfterRequest&) const = default;
};
// Before, after, and their difference. Throws what read_attention and read_residual throw.
CompareSnapshot read_before_after(const CaptureReader& reader, const WhatIfResult& result,
                                  const BeforeAfterRequest& request,
                                  const std::stop_token& stop = {});

// What a result is called where a command makes it again, and what it is saved as at first.
inline constexpr const char* kWhatIfFile = "what-if.h5";

// Everything the What-if panel shows.
struct WhatIfState {
  EditList edits;
  std::vector<std::string> reaches;  // of each edit: what it touches of the selected run
  bool can_undo = false, can_redo = false;
  std::string subject;      // "SmolLM2 · run0 · 64 tokens"; empty = no run is selected
  std::string obstacle;     // why the model cannot be rerun; empty = it can
  bool is_running = false;  // a rerun
  std::string failure;      // of the last rerun or change; empty = none
  std::string note;         // what was done last, as "saved what-if.h5"; empty = nothing
  std::shared_ptr<const WhatIfResult> result;
  std::string saved;           // where the result was saved; empty = it is in a temporary file
  std::string result_command;  // that makes the result again, as kWhatIfFile
  bool is_current = false;     // the result is that of `edits`
  BeforeAfterRequest maps_request;
  std::shared_ptr<const CompareSnapshot> maps;
  PreparedComparison prepared_maps;  // of maps, where it was made off the window's thread
  std::string maps_failure;
  std::shared_ptr<const PreviewSnapshot> preview;  // of one norm or head, while a slider moves
  std::string preview_failure;
  bool is_absorbing = false;
};

}  // namespace sinkscope
