// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

// Inner loops of tap_stats, once per instruction set. Rows are finite unless said.
#define SINKSCOPE_DECLARE_TAP_STATS(isa)                                                          \
  namespace sinkscope::isa {                                                                      \
  /* Central moments and largest |x| of dims [0, n_dims) over n_rows rows, merged into the */     \
  /* running arrays, whose counts are all `count` rows so far. max_token counts from row0. */     \
  void merge_columns(const float* x, std::int64_t stride, int n_rows, int n_dims, int row0,       \
                     double count, double* mean, double* m2, double* m3, double* m4,              \
                     double* sum_abs, float* max_abs, std::int32_t* max_token);                   \
  /* Returns Σx²; the largest |x| and its first index; whether all values are finite. */        \
  double row_energy(const float* x, int n, float* max_abs, std::int32_t* max_dim, bool* finite);  \
  /* |x| as bits: returns how many are below `low`; those in [low, high] go to `inside`, which */ \
  /* has room for n. Any values. */                                                               \
  std::int64_t bits_inside(const float* x, int n, std::int32_t low, std::int32_t high,            \
                           std::int32_t* inside, int* n_inside);                                  \
  }

SINKSCOPE_DECLARE_TAP_STATS(isa_base)
SINKSCOPE_DECLARE_TAP_STATS(isa_avx2)
SINKSCOPE_DECLARE_TAP_STATS(isa_avx512)
