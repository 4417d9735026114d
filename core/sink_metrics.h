// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "core/tensor.h"

namespace sinkscope {

// Attention received by the keys of one head, or of an average map. `pattern` is [query, key],
// after the softmax, causal. Formulas: Gu et al. 2410.10781; Qiu et al. 2601.22966.

struct FirstTokenScore {
  double with_row0 = 0;     // mean over queries 0…T−1 of A[q, 0]
  double without_row0 = 0;  // mean over queries 1…T−1; NaN for one token
};

// s_incl = 1/T Σ_q A[q,0]   (2601.22966, Figure 1: row 0, which is 1, included)
// s_excl = (T·s_incl − A[0,0]) / (T−1)
FirstTokenScore first_token_score(const ConstMapF& pattern);
// From the column sum of key 0 and A[0,0] = 1 − null mass of query 0.
FirstTokenScore first_token_score(double key0_mass, double a00, int seq_len);

// α_k = Σ_{i≥k} A[i,k] / (number of queries that see k, its own included)   (2410.10781)
// One score per key [T]; NaN where no query sees it. The last keys light up by construction.
VectorD gu_scores(const ConstMapF& pattern);
// From column sums key_mass [T] and visible [T], the number of queries that see each key.
VectorD gu_scores(std::span<const float> key_mass, std::span<const int> visible);
// As published, cut to the first `length` positions: rows and keys < length of the map's window
// [W,W]; visible [≥ length] as in the whole map. Requires length ≤ W.
VectorD gu_scores_cut(const ConstMapF& window, std::span<const int> visible, int length);

// Sink ratio: share of (layer, head) cells whose score exceeds epsilon, with the number of cells
// behind it. NaN cells (layers with fewer heads) do not count.
struct SinkRatio {
  double ratio = 0;  // NaN without cells
  std::int64_t above = 0, cells = 0;
};
SinkRatio sink_ratio(std::span<const double> scores, double epsilon);

// Mean and largest score over the heads of a layer: a mean alone hides one strong head.
struct HeadSummary {
  double mean = 0, max = 0, share_above = 0;
  int max_head = -1;
};
HeadSummary summarize_heads(std::span<const double> scores, double epsilon);

}  // namespace sinkscope
