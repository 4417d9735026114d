// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <vector>

#include "capture/model/attention_rows.h"

// The same functions, once per instruction set.
#define SINKSCOPE_DECLARE_ROWS(isa)                                                      \
  namespace sinkscope::isa {                                                             \
  void attention_rows(const AttentionBlock&, const AttentionRowStats&, float* key_mass); \
  void cap_scores(const AttentionBlock&, float cap);                                     \
  void pool_thumbnail(const AttentionBlock&, int seq_len, int bins, int first_bin,       \
                      float* thumbnail);                                                 \
  float kth_smallest(const float* values, int n, int k);                                 \
  double log_sum_exp(const float* values, std::int64_t n);                               \
  int first_above(const float* values, int n, int from, float bar);                      \
  }

namespace sinkscope {

// The n scores of one row into weights, in place, by the scalar reference of core; `top` is the
// largest score, −∞ a masked one. Returns the null mass. The same code for every instruction set.
double weights_by_reference(const Normalizer& normalizer, float* row, int n, float top);

}  // namespace sinkscope

SINKSCOPE_DECLARE_ROWS(isa_base)
SINKSCOPE_DECLARE_ROWS(isa_avx2)
SINKSCOPE_DECLARE_ROWS(isa_avx512)
