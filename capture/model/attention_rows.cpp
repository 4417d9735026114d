// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/model/attention_rows.h"

#include "capture/model/attention_rows_isa.h"
#include "capture/model/isa.h"

namespace sinkscope {

Isa kernel_isa() { return best_isa(); }

void attention_rows(const AttentionBlock& block, const AttentionRowStats& stats, float* key_mass) {
  SINKSCOPE_BY_ISA(attention_rows, block, stats, key_mass);
}

void pool_thumbnail(const AttentionBlock& block, int seq_len, int bins, int first_bin,
                    float* thumbnail) {
  SINKSCOPE_BY_ISA(pool_thumbnail, block, seq_len, bins, first_bin, thumbnail);
}

float lower_median(const float* values, int n) { SINKSCOPE_BY_ISA(lower_median, values, n); }

double log_sum_exp(const float* values, std::int64_t n) {
  SINKSCOPE_BY_ISA(log_sum_exp, values, n);
}

int first_above(const float* values, int n, int from, float bar) {
  SINKSCOPE_BY_ISA(first_above, values, n, from, bar);
}

}  // namespace sinkscope
