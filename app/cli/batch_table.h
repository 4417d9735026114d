// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "app/cli/failure.h"
#include "app/cli/manifest.h"

namespace sinkscope {

// The sink numbers of one run of one recording.
struct BatchRow {
  int entry = 0;
  std::string file, model, prompt, options;
  std::string run, name;  // its group and the user's name for it
  double mean_loss = 0;   // nats over the scored positions; NaN without a head
  std::vector<std::pair<std::string, double>> numbers;  // every scalar of a sink report, "tokens" …
  double max_abs = 0;                                   // the largest |x| of the residual stream
  std::string max_abs_site;
  int max_abs_token = -1, max_abs_dim = -1;
  std::vector<int> sink_tokens, sink_dims;
};

// Reads the entry's recording. Throws what CaptureReader and sink_report throw.
std::vector<BatchRow> batch_rows(const BatchEntry& entry);

struct BatchFailure {
  int entry = 0;
  std::string where, file;
  Failure failure;
};

// A recording that was whole already, while its entry's text or model is gone: whether it is still
// what the entry asks for could be told of its options only.
struct BatchUnchecked {
  int entry = 0;
  std::string where, file, reason;
};

struct BatchReport {
  std::string manifest;
  Shard shard;
  int n_manifest = 0;  // entries of the manifest, all shards
  int n_entries = 0, n_recorded = 0, n_whole_already = 0;
  std::vector<BatchRow> rows;
  std::vector<BatchFailure> failed;
  std::vector<BatchUnchecked> unchecked;  // of those whole already
};

// Schema "sinkscope.batch/1".
nlohmann::ordered_json batch_json(const BatchReport& report);
// One row a run; a column for every number that some run has.
std::string batch_csv(const BatchReport& report);
// For a terminal.
std::string batch_text(const BatchReport& report);

}  // namespace sinkscope
