// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/position_filter.h"
#include "core/what_if/what_if.h"

namespace sinkscope {

// Causal probes of a dimension: what each kind of norm does with it. A probe changes what a norm
// sees, the stream untouched, and what matters is how much the loss rises.

// The norms that are probed together: all of them, one kind, or one alone.
struct ProbeReader {
  std::string name;  // "all norms", "attention norms", "FFN norms", "final norm", "blocks.3.ln1"
  NameList norms;    // as an edit takes them; empty = all
};
// The four kinds of readers; with `each`, every norm of a model of n_layers blocks behind them.
std::vector<ProbeReader> probe_readers(int n_layers, bool each);

struct ProbeRow {
  ProbeReader reader;
  PositionFilter at;  // the edited positions
  ProbeMode mode = ProbeMode::zero;
  bool is_control = false;  // direct_const over all positions: does a constant serve everywhere?
  double delta_loss = 0;  // mean loss minus the model's, over all positions with a next token; nats
  double kl = 0;          // mean KL(model ‖ probed) over the same positions; nats
};

struct ProbeTable {
  std::string model;
  std::vector<int> dims;
  double tau = 0;  // of clamp, in rms of the other dimensions
  std::int64_t n_tokens = 0;
  double loss = 0;                     // of the model as it is
  std::vector<PositionFilter> single;  // that choose one position of all runs: no means there
  std::vector<ProbeRow> rows;
  bool is_single(const PositionFilter& at) const;
};

// Whether a mode sets something to its mean over the edited positions, which over a single one is
// the value itself: mean, direct_const, remove_const.
bool takes_mean(ProbeMode mode);

// The rows to measure, values still 0: every reader, every position filter, every mode, and one
// control a reader. `edits(row)` is what to run for a row.
std::vector<ProbeRow> planned_probes(const std::vector<ProbeReader>& readers,
                                     const std::vector<PositionFilter>& positions,
                                     const std::vector<ProbeMode>& modes);
WhatIf probe_edits(const ProbeRow& row, const std::vector<int>& dims, double tau);

// What a reader does with the dimension, in words, by these criteria. Nothing below 0.02 nats is a
// role. Of the two parts of zero, denominator and direct, each counts that costs at least half of
// the other: taking the dimension out of the denominator alone makes it a "rescaler"; removing its
// output alone, a "constant bias channel" if setting that output to its mean, at all positions and,
// where that was measured, at the edited ones, costs less than 0.02 nats or 5 % of removing it,
// else a "flag": who reads it needs to know where it is. Costs that are not numbers: "not judged".
struct ProbeVerdict {
  ProbeReader reader;
  PositionFilter at;
  std::string role;      // "rescaler", "flag", "constant bias channel", "rescaler and flag", "none"
  std::string sentence;  // with the numbers behind it
};
std::vector<ProbeVerdict> probe_verdicts(const ProbeTable& table);

// Schema "sinkscope.probe/1".
nlohmann::ordered_json probe_json(const ProbeTable& table);
std::string probe_text(const ProbeTable& table);
// reader,at,mode,delta_loss,kl: one row a probe.
std::string probe_csv(const ProbeTable& table);

}  // namespace sinkscope
