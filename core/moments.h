// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <span>

namespace sinkscope {

// Count, mean and sums of powers of the deviations from that mean: m2 = Σ(x−μ)², m3 = Σ(x−μ)³,
// m4 = Σ(x−μ)⁴. Kept centered, because raw power sums lose everything on a channel with mean 14,600
// and deviation 1. Values of two disjoint samples are joined by merge(); an empty one is all zero.
struct Moments {
  double count = 0, mean = 0, m2 = 0, m3 = 0, m4 = 0;

  void add(double x);
  double variance() const;         // m2 / n; NaN when empty
  double sample_variance() const;  // m2 / (n − 1); NaN below two values
  bool operator==(const Moments&) const = default;
};

// Pairwise update of central moments up to the fourth order.
// Source: Pébay 2008, SAND2008-6212, equations 2.1 and following.
Moments merge(const Moments& a, const Moments& b);

// Two passes over the values, in double.
Moments moments_of(std::span<const float> x);

}  // namespace sinkscope
