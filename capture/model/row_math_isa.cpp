// SPDX-License-Identifier: GPL-3.0-or-later
// Compiled once per instruction set; row_math.cpp picks one at run time.
#include "capture/model/row_math_isa.h"

#include <algorithm>
#include <cmath>

#include "capture/model/simd_lanes.h"

namespace sinkscope::SINKSCOPE_ISA {
namespace {

double energy(const float* x, int n) {
  double total = 0;
  for (int run = 0; run < n; run += kRun) {
    const int end = std::min(n, run + kRun);
    F16 lanes{};
    int i = run;
    for (; i + kLanes <= end; i += kLanes) {
      const F16 v = load(x + i);
      lanes += v * v;
    }
    double rest = 0;
    for (; i < end; ++i) rest += static_cast<double>(x[i]) * x[i];
    total += sum(lanes) + rest;
  }
  return total;
}

// a·cos + b·sin for `n` values.
void turn(const float* a, const float* b, const float* cos, const float* sin, int n, float* y) {
  int i = 0;
  for (; i + kLanes <= n; i += kLanes)
    store(y + i, load(a + i) * load(cos + i) + load(b + i) * load(sin + i));
  for (; i < n; ++i) y[i] = a[i] * cos[i] + b[i] * sin[i];
}

// 1 / (1 + e^−x) from e^−|x|, which never overflows.
F16 sigmoid(F16 x) {
  const F16 e = exp_nonpositive(-abs(x));
  return (x < 0.0f ? e : F16{} + 1.0f) / (e + 1.0f);
}

}  // namespace

void rms_norm_rows(const float* x, std::int64_t x_stride, std::int64_t n_rows, int width,
                   const float* gain, double eps, float* y, std::int64_t y_stride) {
  for (std::int64_t r = 0; r < n_rows; ++r, x += x_stride, y += y_stride) {
    const auto scale = static_cast<float>(1 / std::sqrt(energy(x, width) / width + eps));
    int i = 0;
    for (; i + kLanes <= width; i += kLanes) store(y + i, load(x + i) * scale * load(gain + i));
    for (; i < width; ++i) y[i] = x[i] * scale * gain[i];
  }
}

void rotate_heads(const float* x, std::int64_t x_stride, int n_heads, int width, const float* cos,
                  const float* sin, int n, float* y, std::int64_t y_stride) {
  const int half = n / 2;
  for (int h = 0; h < n_heads; ++h, x += x_stride, y += y_stride) {
    turn(x, x + half, cos, sin, half, y);
    turn(x + half, x, cos + half, sin + half, half, y + half);
    std::copy(x + n, x + width, y + n);
  }
}

void silu_times(const float* gate, const float* up, std::int64_t n, float* y) {
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const F16 g = load(gate + i);
    store(y + i, g * sigmoid(g) * load(up + i));
  }
  if (i == n) return;
  const int left = static_cast<int>(n - i);
  const F16 g = load_part(gate + i, left, 0.0f);
  float part[kLanes];
  store(part, g * sigmoid(g));
  for (int l = 0; l < left; ++l) y[i + l] = part[l] * up[i + l];
}

double mean_gap(const float* z, const float* other, std::int64_t n, double lse) {
  const auto shift = static_cast<float>(lse);
  double total = 0;
  for (std::int64_t run = 0; run < n; run += kRun) {
    const std::int64_t end = std::min<std::int64_t>(n, run + kRun);
    F16 lanes{};
    std::int64_t i = run;
    for (; i + kLanes <= end; i += kLanes) {
      const F16 value = load(z + i);
      lanes += exp_nonpositive(value - shift) * (value - load(other + i));
    }
    if (i < end) {
      const int left = static_cast<int>(end - i);
      const F16 value = load_part(z + i, left, shift);
      const F16 gap = value - load_part(other + i, left, shift);
      lanes += exp_nonpositive(value - shift) * gap;
    }
    total += sum(lanes);
  }
  return total;
}

}  // namespace sinkscope::SINKSCOPE_ISA
