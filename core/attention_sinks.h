// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/capture_reader.h"
#include "core/sink_metrics.h"
#include "core/sink_options.h"
#include "core/tensor.h"

namespace sinkscope {

// A key position that some head attends to with more than epsilon on average.
struct SinkToken {
  int token = 0;
  std::string text;
  bool special = false;                  // a BOS position, or spelled like <…>
  int heads = 0;                         // number of (layer, head) with score > epsilon
  double max_score = 0, mean_score = 0;  // over all (layer, head)
  int layer = -1, head = -1;             // where max_score is
};

// Gu's scores of one key over all (layer, head).
struct GuReport {
  double epsilon = 0;
  int key = 0;
  int queries = 0;                  // rows that were used: T, or the length of the cut
  MatrixD score;                    // [A,H]; NaN = no such head
  SinkRatio sink_ratio;             // over the A layers that have softmax attention
  std::vector<HeadSummary> layers;  // [A]
};

// Attention sinks of one run. A = blocks with softmax attention, H = query heads.
struct AttentionSinks {
  std::vector<int> layers;          // [A] block indices
  MatrixD with_row0, without_row0;  // [A,H] first-token scores
  FirstTokenScore mean_map;         // of the map averaged over all (layer, head)
  GuReport gu;
  std::vector<SinkToken> sink_tokens;  // by heads, then by max_score
  int skipped_last_keys = 0;           // keys with too few later queries to be reported

  // Whether a sink token could have been reported: a key with enough later queries, a finite score.
  bool can_be_judged() const { return skipped_last_keys < gu.queries && gu.sink_ratio.cells > 0; }
};

// Why no sink token can be looked for in a run that has softmax attention but cannot be judged:
// "no key has 8 later queries in 6 tokens (--min-queries)".
std::string why_not_judged(const AttentionSinks& attention, const SinkOptions& options);

// From attention/{layers,key_mass,visible,null_mass} and, for a cut, attention/window. Blocks from
// `layers_end` on (not yet recorded) are left out. Without attention statistics everything is
// empty. Throws Error{invalid_argument}: a key or length that the run does not have; those of the
// reader.
AttentionSinks attention_sinks(const CaptureReader& reader, const std::string& run,
                               const RunInput& input, const SinkOptions& options, int layers_end);

}  // namespace sinkscope
