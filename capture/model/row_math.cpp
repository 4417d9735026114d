// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/model/row_math.h"

#include "capture/model/isa.h"
#include "capture/model/row_math_isa.h"

namespace sinkscope {

void rms_norm_rows(const float* x, std::int64_t x_stride, std::int64_t n_rows, int width,
                   const float* gain, double eps, float* y, std::int64_t y_stride) {
  SINKSCOPE_BY_ISA(rms_norm_rows, x, x_stride, n_rows, width, gain, eps, y, y_stride);
}

void rotate_heads(const float* x, std::int64_t x_stride, int n_heads, int width, const float* cos,
                  const float* sin, int n, float* y, std::int64_t y_stride) {
  SINKSCOPE_BY_ISA(rotate_heads, x, x_stride, n_heads, width, cos, sin, n, y, y_stride);
}

void silu_times(const float* gate, const float* up, std::int64_t n, float* y) {
  SINKSCOPE_BY_ISA(silu_times, gate, up, n, y);
}

double mean_gap(const float* z, const float* other, std::int64_t n, double lse) {
  SINKSCOPE_BY_ISA(mean_gap, z, other, n, lse);
}

}  // namespace sinkscope
