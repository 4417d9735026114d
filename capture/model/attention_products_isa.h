// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

// The same functions, once per instruction set.
#define SINKSCOPE_DECLARE_PRODUCTS(isa)                                                          \
  namespace sinkscope::isa {                                                                     \
  void score_rows(const float* q, std::int64_t q_stride, int n_rows, int width, float scale,     \
                  const float* panels, int n_keys, float* scores, std::int64_t stride);          \
  void mix_values(const float* p, std::int64_t p_stride, int n_rows, int n_keys, const float* v, \
                  std::int64_t v_stride, int width, float* out, std::int64_t out_stride);        \
  }

SINKSCOPE_DECLARE_PRODUCTS(isa_base)
SINKSCOPE_DECLARE_PRODUCTS(isa_avx2)
SINKSCOPE_DECLARE_PRODUCTS(isa_avx512)
