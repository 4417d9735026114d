// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/attention_sinks.h"
#include "core/capture_reader.h"
#include "core/mechanisms.h"
#include "core/residual_sinks.h"
#include "core/sink_options.h"

namespace sinkscope {

// Everything `sinks` has to say about a capture: one report per run, and all of them together.
// Made from a `stats` capture alone; what needs more is named in not_computed.

struct RunReport {
  std::string name;  // the run's group: "run0"
  RunInput input;    // its name, token ids and labels
  AttentionSinks attention;
  ResidualReport residual;
  Mechanisms mechanisms;
};

// A number, or an array of numbers, of a run: what the spreads and the CSV go through.
struct Quantity {
  enum class Axis { none, layer, layer_head, site, tensor };
  std::string name;  // as in the JSON: "attention.gu.score"
  Axis axis = Axis::none;
  int rows = 1, cols = 1;      // layer_head: [A,H]; layer, site, tensor: [rows]
  std::vector<double> values;  // [rows, cols]
};
std::vector<Quantity> quantities(const RunReport& run);

// Over the runs that have a value (NaN is left out); sd divides by their number.
struct Spread {
  double mean = 0, sd = 0, min = 0, max = 0;
};
struct SpreadTable {
  Quantity shape;             // values empty
  std::vector<Spread> cells;  // [rows, cols]
};

struct AllRuns {
  int n_runs = 0;
  std::vector<SpreadTable> spreads;
  // Pooled over the positions of all runs: sites, m2, m2_dim, argmax_hit, sinks, sorted_dims,
  // sorted_dims_without_first and the ratios are filled.
  ResidualReport residual;
  double max_inf_norm = 0;  // largest over the names of the mean infinity norm over the runs
  std::vector<std::pair<int, int>> runs_with_sink_dim;           // dim, runs; most runs first
  std::vector<std::pair<int, int>> runs_with_massive_dim;        // dim, runs
  std::vector<std::pair<int, int>> runs_with_sink_token;         // position, runs
  std::vector<std::pair<std::string, int>> runs_with_sink_text;  // label, runs, at any position
};

struct SinkReport {
  std::string path;
  ModelFacts model;
  bool complete = true;
  int layers_done = 0;                // of a capture that is not complete
  std::vector<std::string> left_out;  // runs with fewer whole layers than the first one
  SinkOptions options;
  std::vector<RunReport> runs;
  AllRuns all;
};

// `runs` by group name ("run0"); empty = the capture's default run. Of a capture that is not
// complete, only whole layers are read, and runs that have fewer of them than the first one are
// left out by name. Throws Error: not_found (run), invalid_argument (an option
// that this capture cannot serve), corrupt.
SinkReport sink_report(const CaptureReader& reader, std::vector<std::string> runs,
                       const SinkOptions& options);

// Schema "sinkscope.sinks/1". NaN and infinity are null; their count is in "non_finite_values".
nlohmann::ordered_json sink_report_json(const SinkReport& report);

// For a terminal, ending in the findings.
std::string sink_report_text(const SinkReport& report);

// One table, one number a row: run,quantity,layer,head,site,token,dim,value,text. Of many runs,
// also what holds over them, as run "all".
std::string sink_report_csv(const SinkReport& report);

// The NaN and infinite values of each run, by its name: for non_finite_warning.
std::vector<std::pair<std::string, NonFinite>> non_finite_values(const SinkReport& report);

// Three plain sentences, each with its criterion: attention sink, massive activation, residual
// sink.
std::vector<std::string> sink_findings(const SinkReport& report);

}  // namespace sinkscope
