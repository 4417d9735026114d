// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/moments.h"

#include <limits>

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
  double sum = 0;
  for (const float v : x) sum += v;
  m.mean = sum / m.count;
  for (const float v : x) {
    const double d = v - m.mean;
    m.m2 += d * d;
    m.m3 += d * d * d;
    m.m4 += d * d * d * d;
  }
  return m;
}

}  // namespace sinkscope
