// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cmath>
#include <limits>

#include "capture/model/simd_lanes.h"

// Range and order statistics of a row, for the sources compiled once per instruction set.
namespace sinkscope::SINKSCOPE_ISA {

inline int count_below(const float* x, int n, float pivot) {
  const F16 p = splat(pivot);
  I16 c{};
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) c -= load(x + i) < p;
  int total = 0;
  for (int l = 0; l < kLanes; ++l) total += c[l];
  for (; i < n; ++i) total += x[i] < pivot;
  return total;
}

inline float max_below(const float* x, int n, float bound) {
  const F16 b = splat(bound), lowest = splat(-std::numeric_limits<float>::infinity());
  F16 m = lowest;
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const F16 v = load(x + i);
    m = max(m, v < b ? v : lowest);
  }
  float result = max_lane(m);
  for (; i < n; ++i)
    if (x[i] < bound && x[i] > result) result = x[i];
  return result;
}

struct Range {
  float min, max;
};

inline Range range_of(const float* x, int n) {
  const float inf = std::numeric_limits<float>::infinity();
  F16 lo = splat(inf), hi = splat(-inf);
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const F16 v = load(x + i);
    lo = min(lo, v);
    hi = max(hi, v);
  }
  if (i < n) {
    lo = min(lo, load_part(x + i, n - i, inf));
    hi = max(hi, load_part(x + i, n - i, -inf));
  }
  return {-max_lane(-lo), max_lane(hi)};
}

// Narrows a bracket of values: each step is one vectorized count, at the point where the k-th
// would lie if the values between were spread evenly, or in the middle where that guess has not
// halved their number. Ends when a single element is left. Invariant: count(x < lo) ≤ k <
// count(x < hi).
inline float select(const float* x, int n, int k, Range range) {
  float lo = range.min;
  float hi = std::nextafter(range.max, std::numeric_limits<float>::infinity());
  int below_lo = 0, below_hi = n;
  bool guesses = true;
  while (below_hi - below_lo > 1) {
    const int inside = below_hi - below_lo;
    const float share =
        guesses ? (static_cast<float>(k - below_lo) + 0.5f) / static_cast<float>(inside) : 0.5f;
    float at = lo + (hi - lo) * share;
    if (!(at > lo && at < hi)) at = lo + (hi - lo) * 0.5f;
    if (!(at > lo && at < hi)) return lo;  // the bracket holds equal values only
    const int c = count_below(x, n, at);
    if (c <= k) {
      lo = at;
      below_lo = c;
    } else {
      hi = at;
      below_hi = c;
    }
    guesses = 2 * (below_hi - below_lo) <= inside;
  }
  return max_below(x, n, hi);
}

}  // namespace sinkscope::SINKSCOPE_ISA
