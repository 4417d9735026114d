// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

// The same functions, once per instruction set.
#define SINKSCOPE_DECLARE_ROW_MATH(isa)                                                          \
  namespace sinkscope::isa {                                                                     \
  void rms_norm_rows(const float* x, std::int64_t x_stride, std::int64_t n_rows, int width,      \
                     const float* gain, double eps, float* y, std::int64_t y_stride);            \
  void rotate_heads(const float* x, std::int64_t x_stride, int n_heads, int width,               \
                    const float* cos, const float* sin, int n, float* y, std::int64_t y_stride); \
  void silu_times(const float* gate, const float* up, std::int64_t n, float* y);                 \
  double mean_gap(const float* z, const float* other, std::int64_t n, double lse);               \
  }

SINKSCOPE_DECLARE_ROW_MATH(isa_base)
SINKSCOPE_DECLARE_ROW_MATH(isa_avx2)
SINKSCOPE_DECLARE_ROW_MATH(isa_avx512)
