// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/record/tap_stats.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>

#include "capture/model/attention_rows.h"
#include "capture/model/isa.h"
#include "capture/record/tap_stats_isa.h"

namespace sinkscope {
namespace {

constexpr int kTileRows = 256;

std::size_t at(int i) { return static_cast<std::size_t>(i); }

double row_energy(const float* x, int n, float* max_abs, std::int32_t* max_dim, bool* finite) {
  SINKSCOPE_BY_ISA(row_energy, x, n, max_abs, max_dim, finite);
}
void merge_columns(const float* x, std::int64_t stride, int n_rows, int n_dims, int row0,
                   double count, double* mean, double* m2, double* m3, double* m4, double* sum_abs,
                   float* max_abs, std::int32_t* max_token) {
  SINKSCOPE_BY_ISA(merge_columns, x, stride, n_rows, n_dims, row0, count, mean, m2, m3, m4, sum_abs,
                   max_abs, max_token);
}
std::int64_t bits_inside(const float* x, int n, std::int32_t low, std::int32_t high,
                         std::int32_t* inside, int* n_inside) {
  SINKSCOPE_BY_ISA(bits_inside, x, n, low, high, inside, n_inside);
}
// A row with NaN or infinity: counts them and looks only at what is finite.
void careful_row(const float* x, int n, TokenStats& token, std::size_t t) {
  double energy = 0, best = -1;
  for (int d = 0; d < n; ++d) {
    if (std::isnan(x[d])) {
      ++token.n_nan[t];
    } else if (std::isinf(x[d])) {
      ++token.n_inf[t];
    } else {
      energy += static_cast<double>(x[d]) * x[d];
      if (std::fabs(x[d]) > best) {
        best = std::fabs(x[d]);
        token.max_dim[t] = d;
      }
    }
  }
  const int finite = n - token.n_nan[t] - token.n_inf[t];
  token.max_abs[t] = best < 0 ? std::numeric_limits<double>::quiet_NaN() : best;
  token.rms[t] = finite > 0 ? std::sqrt(energy / finite) : std::numeric_limits<double>::quiet_NaN();
  token.r2[t] = energy > 0 ? best * best / energy : 0;
}

// Columns of a matrix with NaN or infinity somewhere: plain two-pass sums over finite values.
void careful_columns(const float* x, std::int64_t stride, int row_begin, int row_end, int d,
                     DimStats& out) {
  double n = 0, sum = 0, sum_abs = 0;
  for (int r = row_begin; r < row_end; ++r) {
    const double v = x[r * stride + d];
    if (!std::isfinite(v)) continue;
    ++n;
    sum += v;
    sum_abs += std::fabs(v);
    if (out.max_token[at(d)] < 0 || std::fabs(v) > out.max_abs[at(d)]) {
      out.max_abs[at(d)] = std::fabs(v);
      out.max_token[at(d)] = r;
    }
  }
  out.count[at(d)] = n;
  if (n == 0) return;
  const double mu = sum / n;
  for (int r = row_begin; r < row_end; ++r) {
    const double v = x[r * stride + d];
    if (!std::isfinite(v)) continue;
    const double e = v - mu;
    out.m2[at(d)] += e * e;
    out.m3[at(d)] += e * e * e;
    out.m4[at(d)] += e * e * e * e;
  }
  out.mean[at(d)] = mu;
  out.mean_abs[at(d)] = sum_abs / n;
}

// Columns [d0, d1) over rows [row_begin, row_end), every value finite.
void fast_columns(const float* x, std::int64_t stride, int row_begin, int row_end, int d0, int d1,
                  DimStats& out) {
  const int n = d1 - d0;
  std::vector<float> max_abs(at(n), -1.0f);
  for (int r = row_begin; r < row_end; r += kTileRows) {
    const int rows = std::min(kTileRows, row_end - r);
    merge_columns(x + r * stride + d0, stride, rows, n, r, r - row_begin, &out.mean[at(d0)],
                  &out.m2[at(d0)], &out.m3[at(d0)], &out.m4[at(d0)], &out.mean_abs[at(d0)],
                  max_abs.data(), &out.max_token[at(d0)]);
  }
  const double count = row_end - row_begin;
  for (int d = d0; d < d1; ++d) {
    out.count[at(d)] = count;
    out.mean_abs[at(d)] /= count;
    out.max_abs[at(d)] = max_abs[at(d - d0)];
  }
}

}  // namespace

DimStats::DimStats(int width)
    : count(at(width)),
      mean(count),
      m2(count),
      m3(count),
      m4(count),
      mean_abs(count),
      max_abs(count),
      max_token(at(width), -1),
      argmax_count(at(width), 0) {}

TokenStats::TokenStats(int seq_len)
    : rms(at(seq_len)),
      max_abs(rms),
      r2(rms),
      max_dim(at(seq_len), -1),
      n_nan(at(seq_len), 0),
      n_inf(n_nan) {}

void serial_for(std::int64_t n, std::int64_t, const RangeBody& body) { body(0, n); }

TapStats tap_stats(const float* x, int seq_len, int width, std::int64_t stride,
                   const ParallelFor& parallel) {
  TapStats stats(seq_len, width);
  std::atomic<bool> all_finite{true};
  parallel(seq_len, 64, [&](std::int64_t begin, std::int64_t end) {
    for (int r = static_cast<int>(begin); r < end; ++r) {
      float best = 0;
      std::int32_t dim = -1;
      bool finite = true;
      const double energy = row_energy(x + r * stride, width, &best, &dim, &finite);
      if (!finite) {
        all_finite = false;
        careful_row(x + r * stride, width, stats.token, at(r));
        continue;
      }
      stats.token.rms[at(r)] = std::sqrt(energy / width);
      stats.token.max_abs[at(r)] = best;
      stats.token.max_dim[at(r)] = dim;
      stats.token.r2[at(r)] = energy > 0 ? static_cast<double>(best) * best / energy : 0;
    }
  });
  const auto part = [&](int row_begin, int row_end, DimStats& out) {
    if (row_end <= row_begin) return;
    parallel((width + 63) / 64, row_end - row_begin > 1 ? 1 : 64,
             [&](std::int64_t begin, std::int64_t end) {
               const int d0 = static_cast<int>(begin * 64);
               const int d1 = static_cast<int>(std::min<std::int64_t>(width, end * 64));
               if (all_finite) {
                 fast_columns(x, stride, row_begin, row_end, d0, d1, out);
               } else {
                 for (int d = d0; d < d1; ++d)
                   careful_columns(x, stride, row_begin, row_end, d, out);
               }
             });
  };
  part(0, std::min(1, seq_len), stats.first);
  part(1, seq_len, stats.rest);
  for (int r = 0; r < seq_len; ++r) {
    const std::int32_t d = stats.token.max_dim[at(r)];
    if (d >= 0) ++(r == 0 ? stats.first : stats.rest).argmax_count[at(d)];
  }
  return stats;
}

namespace {

struct Matrix {
  const float* x;
  int seq_len, width;
  std::int64_t stride;
};

constexpr std::int32_t kInfinityBits = 0x7f800000;

// |x| as bits: non-negative floats are ordered as their bits are, NaN above all.
std::int32_t abs_bits(float x) {
  std::int32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits & 0x7fffffff;
}

// Values around the middle of 2,048 of the |x|, five standard errors of a sample's median away from
// it: the median of all lies between them, nearly always.
std::pair<std::int32_t, std::int32_t> likely_bracket(const Matrix& m) {
  const std::int64_t n = std::int64_t{m.seq_len} * m.width;
  const std::int64_t step =
      n / 2048 | 1;  // odd: no power of two of dimensions is met again and again
  std::vector<std::int32_t> sample;
  for (std::int64_t i = 0; i < n; i += step)
    sample.push_back(abs_bits(m.x[i / m.width * m.stride + i % m.width]));
  const auto size = static_cast<std::int64_t>(sample.size());
  const auto reach =
      static_cast<std::int64_t>(std::ceil(2.5 * std::sqrt(static_cast<double>(size))));
  const auto nth = [&](std::int64_t k) {
    const auto place = sample.begin() + std::clamp(k, std::int64_t{0}, size - 1);
    std::nth_element(sample.begin(), place, sample.end());
    return *place;
  };
  const std::int32_t low = nth(size / 2 - reach);
  return {low, nth(size / 2 + reach)};
}

// The k-th of the |x|, if it lies in [low, high]: one pass counts what is below and keeps what is
// inside.
std::optional<std::int32_t> select_inside(const Matrix& m, std::int64_t k, std::int32_t low,
                                          std::int32_t high, const ParallelFor& parallel) {
  std::vector<std::int32_t> inside;
  std::int64_t below = 0;
  std::mutex mutex;
  parallel(m.seq_len, (m.seq_len + 1) / 2, [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::int32_t> part(at(m.width));
    std::vector<std::int32_t> kept;
    std::int64_t n_below = 0;
    for (std::int64_t r = begin; r < end; ++r) {
      int n = 0;
      n_below += bits_inside(m.x + r * m.stride, m.width, low, high, part.data(), &n);
      kept.insert(kept.end(), part.begin(), part.begin() + n);
    }
    const std::lock_guard lock(mutex);
    below += n_below;
    inside.insert(inside.end(), kept.begin(), kept.end());
  });
  k -= below;
  if (k < 0 || k >= static_cast<std::int64_t>(inside.size())) return std::nullopt;
  if (high < kInfinityBits && inside.size() <= std::numeric_limits<int>::max()) {
    std::vector<float> values(inside.size());
    std::memcpy(values.data(), inside.data(), inside.size() * sizeof(float));
    return abs_bits(
        kth_smallest(values.data(), static_cast<int>(values.size()), static_cast<int>(k)));
  }
  const auto middle = inside.begin() + static_cast<std::ptrdiff_t>(k);
  std::nth_element(inside.begin(), middle, inside.end());
  return *middle;
}

}  // namespace

double median_abs(const float* x, int seq_len, int width, std::int64_t stride,
                  const ParallelFor& parallel) {
  const Matrix m{x, seq_len, width, stride};
  const std::int64_t k = (std::int64_t{seq_len} * width - 1) / 2;
  const auto [low, high] = likely_bracket(m);
  auto bits = select_inside(m, k, low, high, parallel);
  if (!bits) bits = select_inside(m, k, 0, 0x7fffffff, parallel);
  float value;
  std::memcpy(&value, &*bits, sizeof value);
  return value;
}

}  // namespace sinkscope
