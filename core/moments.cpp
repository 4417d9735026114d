// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/moments.h"

#include <limits>
#include <numeric>

namespace sinkscope {

void Moments::add(double x) { *this = merge(*this, Moments{.count = 1, .mean = x}); }

double Moments::variance() const {
  return count > 0 ? m2 / count : std::numeric_limits<double>::quiet_NaN();
}

double Moments::sample_variance() const {
  return count > 1 ? m2 / (count - 1) : std::numeric_limits<double>::quiet_NaN();
}

Moments merge(const Moments& a, const Moments& b) {
  if (a.count == 0) return b;
  if (b.count == 0) return a;
  const double n = a.count + b.count;
  const double delta = b.mean - a.mean;
  const double d = delta / n;
  const double cross = delta * d * a.count * b.count;  // δ² nA nB / n
  Moments sum;
  sum.count = n;
  sum.mean = a.mean + d * b.count;
  sum.m2 = a.m2 + b.m2 + cross;
  sum.m3 =
      a.m3 + b.m3 + cross * d * (a.count - b.count) + 3 * d * (a.count * b.m2 - b.count * a.m2);
  sum.m4 = a.m4 + b.m4 +
           cross * d * d * (a.count * a.count - a.count * b.count + b.count * b.count) +
           6 * d * d * (a.count * a.count * b.m2 + b.count * b.count * a.m2) +
           4 * d * (a.count * b.m3 - b.count * a.m3);
  return sum;
}

Moments moments_of(std::span<const float> x) {
  Moments m;
  m.count = static_cast<double>(x.size());
  if (x.empty()) return m;
  // Lanes that do not wait for each other: one chain of additions would take thrice the time.
  constexpr std::size_t kLanes = 8;
  double sum[kLanes] = {}, m2[kLanes] = {}, m3[kLanes] = {}, m4[kLanes] = {};
  const std::size_t whole = x.size() - x.size() % kLanes;
  for (std::size_t i = 0; i < whole; i += kLanes)
    for (std::size_t l = 0; l < kLanes; ++l) sum[l] += x[i + l];
  for (std::size_t i = whole; i < x.size(); ++i) sum[i - whole] += x[i];
  m.mean = std::accumulate(sum, sum + kLanes, 0.0) / m.count;
  const auto add = [&](std::size_t lane, float value) {
    const double d = value - m.mean, square = d * d;
    m2[lane] += square;
    m3[lane] += square * d;
    m4[lane] += square * square;
  };
  for (std::size_t i = 0; i < whole; i += kLanes)
    for (std::size_t l = 0; l < kLanes; ++l) add(l, x[i + l]);
  for (std::size_t i = whole; i < x.size(); ++i) add(i - whole, x[i]);
  m.m2 = std::accumulate(m2, m2 + kLanes, 0.0);
  m.m3 = std::accumulate(m3, m3 + kLanes, 0.0);
  m.m4 = std::accumulate(m4, m4 + kLanes, 0.0);
  return m;
}

}  // namespace sinkscope
