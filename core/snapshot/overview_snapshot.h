// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "core/draw/grid.h"
#include "core/sink_report.h"
#include "core/snapshot/run_facts.h"

namespace sinkscope {

// Which score a layer × head map shows; formulas in core/sink_metrics.h.
enum class ScoreKind { gu, with_row0, without_row0 };
// "Gu's sink score of key 0: mean attention from the queries that can see it (2410.10781)"
std::string describe(ScoreKind kind, int key);

struct OverviewRequest {
  std::string run;
  // The stream itself is not read: everything here is in the statistics of every capture.
  SinkOptions options = without_stream();
  bool operator==(const OverviewRequest&) const = default;

  static SinkOptions without_stream();
};

// A quantity against depth. positions [n] are block states (0 = before the first block) or blocks.
struct DepthLine {
  std::string name;        // "max |x|"
  std::string convention;  // "largest |x| of the state, all tokens and dimensions"
  std::vector<int> positions;
  std::vector<double> values;  // [n], NaN where there is none
};

struct Finding {
  std::string sentence;   // "Token 0 "The" is an attention sink: …"
  std::string criterion;  // "score > 0.3 (Gu et al. 2410.10781) …"
  // Where to go for it; −1 = nowhere in particular.
  int layer = -1, head = -1, key = -1, token = -1, dim = -1;
};

// A further map, of a mechanism that the model has: heads × layers, or what a mix over depth reads
// (the embedding first, the newest sum last) × who reads it.
struct MechanismMap {
  std::string name;        // "Sink share"
  std::string convention;  // the map's title
  std::string row_title, col_title;
  Grid values;                          // NaN = there is none
  std::vector<int> layers;              // [cols] block indices; −1 = in front of the final norm
  std::vector<std::string> row_labels;  // empty = 0, 1, 2 …
  std::vector<std::string> col_labels;  // empty = the layers
  bool is_share = true;                 // 0 to 1
  bool has_heads = true;                // rows are heads
};

// What a capture says at one glance.
struct OverviewSnapshot {
  OverviewRequest request;
  RunFacts facts;
  std::vector<int> layers;  // [A] blocks with softmax attention
  int n_heads = 0;          // H
  // [H, A]: heads downwards, depth to the right as in the lines. Empty without attention.
  Grid gu, with_row0, without_row0;
  SinkRatio sink_ratio;
  DepthLine max_abs, median_abs;    // over the L+1 block states
  DepthLine mean_score, max_score;  // Gu's score over the heads of each layer
  DepthLine kurtosis;               // over the block states; its flavor is in the name
  std::vector<Finding> findings;    // attention sink, massive activation, residual sink
  std::vector<SinkToken> sink_tokens;
  std::vector<MechanismMap> mechanisms;  // those that the model has
  std::string stream_text;               // which stream the lines are of; "" = the residual stream

  const Grid& score(ScoreKind kind) const;
};

// Errors: those of sink_report.
OverviewSnapshot read_overview(const CaptureReader& reader, const OverviewRequest& request);

}  // namespace sinkscope
