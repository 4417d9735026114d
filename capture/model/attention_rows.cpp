// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/model/attention_rows.h"

#include <cmath>
#include <vector>

#include "capture/model/attention_rows_isa.h"
#include "capture/model/isa.h"

namespace sinkscope {

Isa kernel_isa() { return best_isa(); }

void attention_rows(const AttentionBlock& block, const AttentionRowStats& stats, float* key_mass) {
  SINKSCOPE_BY_ISA(attention_rows, block, stats, key_mass);
}

void cap_scores(const AttentionBlock& block, float cap) {
  SINKSCOPE_BY_ISA(cap_scores, block, cap);
}

void pool_thumbnail(const AttentionBlock& block, int seq_len, int bins, int first_bin,
                    float* thumbnail) {
  SINKSCOPE_BY_ISA(pool_thumbnail, block, seq_len, bins, first_bin, thumbnail);
}

float kth_smallest(const float* values, int n, int k) {
  SINKSCOPE_BY_ISA(kth_smallest, values, n, k);
}

double log_sum_exp(const float* values, std::int64_t n) {
  SINKSCOPE_BY_ISA(log_sum_exp, values, n);
}

int first_above(const float* values, int n, int from, float bar) {
  SINKSCOPE_BY_ISA(first_above, values, n, from, bar);
}

// What cannot be in the support of sparsemax (entmax 1.5) lies more than 1 (2) below the largest
// score, and need not be sorted.
double weights_by_reference(const Normalizer& normalizer, float* row, int n, float top) {
  const float reach = normalizer.kind == NormalizerKind::sparsemax  ? 1.0f
                      : normalizer.kind == NormalizerKind::entmax15 ? 2.0f
                                                                    : HUGE_VALF;
  thread_local std::vector<double> scores;
  thread_local std::vector<int> places;
  scores.clear();
  places.clear();
  for (int i = 0; i < n; ++i) {
    if (row[i] >= top - reach && row[i] > -HUGE_VALF) {
      scores.push_back(row[i]);
      places.push_back(i);
    }
    row[i] = 0;
  }
  const NormalizedRow weights = normalize(normalizer, scores);
  for (std::size_t i = 0; i < places.size(); ++i) row[places[i]] = static_cast<float>(weights.p[i]);
  return weights.null_mass;
}

}  // namespace sinkscope
