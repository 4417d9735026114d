// SPDX-License-Identifier: GPL-3.0-or-later
// Compiled once per instruction set; tap_stats.cpp picks one at run time.
#include "capture/record/tap_stats_isa.h"

#include <cmath>
#include <limits>

#include "capture/model/simd_lanes.h"

namespace sinkscope::SINKSCOPE_ISA {
namespace {

struct Tile {
  const float* x;
  std::int64_t stride;
  int n_rows, row0;
  double count;  // rows merged before this tile
};

// Pébay, "Formulas for robust, one-pass parallel computation of covariances and arbitrary-order
// statistical moments" (2008), eqs. 1.5, 2.1, 3.1: two sets of nA and nB values become one.
template <class V>
void merge(double n_a, double n_b, V delta, V b2, V b3, V b4, V& mean, V& m2, V& m3, V& m4) {
  const double n = n_a + n_b;
  const V d_n = delta / n;   // δ/n
  const V d2 = delta * d_n;  // δ²/n
  const V d3 = d2 * d_n;     // δ³/n²
  m4 = m4 + b4 + d3 * d_n * (n_a * n_b * (n_a * n_a - n_a * n_b + n_b * n_b)) +
       d_n * d_n * 6.0 * (b2 * (n_a * n_a) + m2 * (n_b * n_b)) + d_n * 4.0 * (b3 * n_a - m3 * n_b);
  m3 = m3 + b3 + d3 * (n_a * n_b * (n_a - n_b)) + d_n * 3.0 * (b2 * n_a - m2 * n_b);
  m2 = m2 + b2 + d2 * (n_a * n_b);
  mean = mean + d_n * n_b;
}

// Eight dimensions at a time down the rows: the sums of a tile, then the merge.
void merge_eight(const Tile& t, int d, double* mean, double* m2, double* m3, double* m4,
                 double* sum_abs) {
  const float* x = t.x + d;
  D8 sum{};
  for (int r = 0; r < t.n_rows; ++r) sum += load_double(x + r * t.stride);
  const D8 mu = sum / static_cast<double>(t.n_rows);
  D8 b2{}, b3{}, b4{}, a{};
  for (int r = 0; r < t.n_rows; ++r) {
    const D8 v = load_double(x + r * t.stride);
    const D8 e = v - mu, e2 = e * e;
    b2 += e2;
    b3 += e2 * e;
    b4 += e2 * e2;
    a += v < 0 ? -v : v;
  }
  D8 run_mean = load_double(mean + d), run2 = load_double(m2 + d), run3 = load_double(m3 + d),
     run4 = load_double(m4 + d);
  if (t.count == 0) {
    run_mean = mu;
    run2 = b2;
    run3 = b3;
    run4 = b4;
  } else {
    merge(t.count, static_cast<double>(t.n_rows), mu - run_mean, b2, b3, b4, run_mean, run2, run3,
          run4);
  }
  store(mean + d, run_mean);
  store(m2 + d, run2);
  store(m3 + d, run3);
  store(m4 + d, run4);
  store(sum_abs + d, load_double(sum_abs + d) + a);
}

void merge_one(const Tile& t, int d, double* mean, double* m2, double* m3, double* m4,
               double* sum_abs) {
  double sum = 0, b2 = 0, b3 = 0, b4 = 0, a = 0;
  for (int r = 0; r < t.n_rows; ++r) sum += t.x[r * t.stride + d];
  const double mu = sum / t.n_rows;
  for (int r = 0; r < t.n_rows; ++r) {
    const double v = t.x[r * t.stride + d], e = v - mu;
    b2 += e * e;
    b3 += e * e * e;
    b4 += e * e * e * e;
    a += std::fabs(v);
  }
  if (t.count == 0) {
    mean[d] = mu;
    m2[d] = b2;
    m3[d] = b3;
    m4[d] = b4;
  } else {
    merge(t.count, static_cast<double>(t.n_rows), mu - mean[d], b2, b3, b4, mean[d], m2[d], m3[d],
          m4[d]);
  }
  sum_abs[d] += a;
}

void largest(const Tile& t, int n_dims, float* max_abs, std::int32_t* max_token) {
  for (int r = 0; r < t.n_rows; ++r) {
    const float* row = t.x + r * t.stride;
    const std::int32_t token = t.row0 + r;
    int d = 0;
    for (; d + kLanes <= n_dims; d += kLanes) {
      const F16 v = abs(load(row + d)), best = load(max_abs + d);
      I16 at;
      std::memcpy(&at, max_token + d, sizeof at);
      const I16 larger = v > best;
      at = larger ? I16{} + token : at;
      store(max_abs + d, larger ? v : best);
      std::memcpy(max_token + d, &at, sizeof at);
    }
    for (; d < n_dims; ++d) {
      const float v = std::fabs(row[d]);
      if (v > max_abs[d]) {
        max_abs[d] = v;
        max_token[d] = token;
      }
    }
  }
}

}  // namespace

void merge_columns(const float* x, std::int64_t stride, int n_rows, int n_dims, int row0,
                   double count, double* mean, double* m2, double* m3, double* m4, double* sum_abs,
                   float* max_abs, std::int32_t* max_token) {
  const Tile tile{x, stride, n_rows, row0, count};
  int d = 0;
  for (; d + 8 <= n_dims; d += 8) merge_eight(tile, d, mean, m2, m3, m4, sum_abs);
  for (; d < n_dims; ++d) merge_one(tile, d, mean, m2, m3, m4, sum_abs);
  largest(tile, n_dims, max_abs, max_token);
}

double row_energy(const float* x, int n, float* max_abs, std::int32_t* max_dim, bool* finite) {
  D8 energy{};
  F16 top = splat(-1.0f), poison{};
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const D8 lo = load_double(x + i), hi = load_double(x + i + 8);
    energy += lo * lo;
    energy += hi * hi;
    const F16 v = load(x + i);
    top = max(abs(v), top);
    poison += v * 0.0f;  // NaN as soon as one value is not finite
  }
  float best = max_lane(top), bad = sum(poison);
  double total = 0;
  for (int l = 0; l < 8; ++l) total += energy[l];
  for (; i < n; ++i) {
    total += static_cast<double>(x[i]) * x[i];
    best = std::fabs(x[i]) > best ? std::fabs(x[i]) : best;
    bad += x[i] * 0.0f;
  }
  *finite = bad == 0.0f;
  *max_abs = best;
  *max_dim = -1;
  for (int d = 0; d < n; ++d) {
    if (std::fabs(x[d]) == best) {
      *max_dim = d;
      break;
    }
  }
  return total;
}

std::int64_t bits_inside(const float* x, int n, std::int32_t low, std::int32_t high,
                         std::int32_t* inside, int* n_inside) {
  const I16 lows = I16{} + low, highs = I16{} + high;
  I16 below{};
  std::int64_t n_below = 0;
  int kept = 0, i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    I16 bits;
    std::memcpy(&bits, x + i, sizeof bits);
    bits &= 0x7fffffff;
    below -= bits < lows;
    const I16 is_inside = (bits >= lows) & (bits <= highs);
    // Branch-free: every lane is put down, and the next one over it if it is not to stay.
    for (int l = 0; l < kLanes; ++l) {
      inside[kept] = bits[l];
      kept -= is_inside[l];
    }
  }
  for (int l = 0; l < kLanes; ++l) n_below += below[l];
  for (; i < n; ++i) {
    std::int32_t bits;
    std::memcpy(&bits, x + i, sizeof bits);
    bits &= 0x7fffffff;
    n_below += bits < low;
    inside[kept] = bits;
    kept += bits >= low && bits <= high;
  }
  *n_inside = kept;
  return n_below;
}

}  // namespace sinkscope::SINKSCOPE_ISA
