// SPDX-License-Identifier: GPL-3.0-or-later
// What is done to score rows beside their softmax. Compiled once per instruction set;
// attention_rows.cpp picks one at run time.
#include <algorithm>
#include <cmath>
#include <vector>

#include "capture/model/attention_rows.h"
#include "capture/model/attention_rows_isa.h"
#include "capture/model/row_order_isa.h"
#include "capture/model/simd_lanes.h"

namespace sinkscope::SINKSCOPE_ISA {
void cap_scores(const AttentionBlock& b, float cap) {
  // tanh |u| = (1 - e^(-2|u|)) / (1 + e^(-2|u|)), the sign put back.
  const float scale = -2.0f / cap;
  for (int row = 0; row < b.n_rows; ++row) {
    float* x = b.scores + row * b.stride;
    for (int i = 0; i < b.n_keys; i += kLanes) {
      const int left = std::min(kLanes, b.n_keys - i);
      const F16 s = left == kLanes ? load(x + i) : load_part(x + i, left, 0.0f);
      const F16 e = exp_nonpositive(abs(s) * scale);
      const F16 t = (1.0f - e) / (1.0f + e) * cap;
      const F16 capped = s < F16{} ? -t : t;
      if (left == kLanes) {
        store(x + i, capped);
        continue;
      }
      float part[kLanes];
      store(part, capped);
      std::copy(part, part + left, x + i);
    }
  }
}

float kth_smallest(const float* values, int n, int k) {
  return select(values, n, k, range_of(values, n));
}

double log_sum_exp(const float* values, std::int64_t n) {
  const float top = range_of(values, static_cast<int>(n)).max;
  double mass = 0;
  for (std::int64_t run = 0; run < n; run += kRun) {
    const std::int64_t end = std::min<std::int64_t>(n, run + kRun);
    F16 part{};
    std::int64_t i = run;
    for (; i + kLanes <= end; i += kLanes) part += exp_nonpositive(load(values + i) - top);
    if (i < end) {
      const int left = static_cast<int>(end - i);
      part += exp_nonpositive(keep(load_part(values + i, left, top) - top, left, -1000.0f));
    }
    mass += sum(part);
  }
  return top + std::log(mass);
}

int first_above(const float* values, int n, int from, float bar) {
  const F16 limit = splat(bar);
  int i = from;
  for (; i + kLanes <= n; i += kLanes) {
    const I16 above = load(values + i) > limit;
    std::int32_t any = 0;
    for (int l = 0; l < kLanes; ++l) any |= above[l];
    if (any != 0) break;
  }
  while (i < n && !(values[i] > bar)) ++i;
  return i;
}

void pool_thumbnail(const AttentionBlock& b, int seq_len, int bins, int first_bin,
                    float* thumbnail) {
  const auto bin_of = [&](int i) { return static_cast<int>(std::int64_t{i} * bins / seq_len); };
  // First of all rows of one bin element by element, then of that one row over the keys' bins.
  thread_local std::vector<float> tallest;
  tallest.resize(static_cast<std::size_t>(b.n_keys));
  int row = 0;
  while (row < b.n_rows) {
    const int bin = bin_of(b.query_begin + row);
    std::fill(tallest.begin(), tallest.end(), 0.0f);
    for (; row < b.n_rows && bin_of(b.query_begin + row) == bin; ++row) {
      const float* x = b.scores + row * b.stride;
      int i = 0;
      for (; i + kLanes <= b.n_keys; i += kLanes)
        store(&tallest[i], max(load(&tallest[i]), load(x + i)));
      for (; i < b.n_keys; ++i) tallest[i] = std::max(tallest[i], x[i]);
    }
    float* line = thumbnail + std::int64_t{bin - first_bin} * bins;
    int i = 0;
    while (i < b.n_keys) {
      const int column = bin_of(b.key_begin + i);
      // First key of the next bin: the smallest j with j * bins ≥ (column + 1) * seq_len.
      const std::int64_t next =
          (std::int64_t{column + 1} * seq_len + bins - 1) / bins - b.key_begin;
      const int end = static_cast<int>(std::min<std::int64_t>(b.n_keys, next));
      float top = line[column];
      for (; i < end; ++i) top = std::max(top, tallest[i]);
      line[column] = top;
    }
  }
}

}  // namespace sinkscope::SINKSCOPE_ISA
