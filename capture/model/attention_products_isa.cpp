// SPDX-License-Identifier: GPL-3.0-or-later
// Compiled once per instruction set; attention_products.cpp picks one at run time.
#include "capture/model/attention_products_isa.h"

#include <algorithm>

#include "capture/model/simd_lanes.h"

namespace sinkscope::SINKSCOPE_ISA {
namespace {

// Rows and 16-lane columns of the block that stays in registers.
#if defined(__AVX512F__)
constexpr int kRows = 8, kColumns = 2;
#elif defined(__AVX2__)
constexpr int kRows = 4, kColumns = 1;
#else
constexpr int kRows = 2, kColumns = 1;
#endif

// Terms that are summed in registers before they go to memory, so that long sums lose little.
constexpr int kTerms = 256;

struct Left {  // [rows, terms]
  const float* data;
  std::int64_t stride;
};

struct Right {  // lane c of column p at term i is data[i * term_stride + p * column_stride + c]
  const float* data;
  std::int64_t term_stride, column_stride;
};

struct Out {
  float* data;
  std::int64_t stride;
  int n_columns;  // floats of a row that may be written
  float scale;
  bool adds;
};

inline void put(float* to, F16 value, int n, bool adds) {
  if (n >= kLanes) {
    store(to, adds ? load(to) + value : value);
    return;
  }
  float part[kLanes];
  store(part, value);
  for (int i = 0; i < n; ++i) to[i] = adds ? to[i] + part[i] : part[i];
}

// R rows times C columns of 16 lanes, over n terms.
template <int R, int C>
void block(Left a, Right b, int n, Out out) {
  F16 sums[R][C] = {};
  for (int i = 0; i < n; ++i) {
    F16 right[C];
    for (int c = 0; c < C; ++c) right[c] = load(b.data + i * b.term_stride + c * b.column_stride);
    for (int r = 0; r < R; ++r) {
      const F16 left = splat(a.data[r * a.stride + i]);
      for (int c = 0; c < C; ++c) sums[r][c] += left * right[c];
    }
  }
  for (int r = 0; r < R; ++r)
    for (int c = 0; c < C && c * kLanes < out.n_columns; ++c)
      put(out.data + r * out.stride + c * kLanes, sums[r][c] * out.scale,
          out.n_columns - c * kLanes, out.adds);
}

template <int C>
void rows_of_block(int n_rows, Left a, Right b, int n, Out out) {
  int r = 0;
  for (; r + kRows <= n_rows; r += kRows) {
    block<kRows, C>(a, b, n, out);
    a.data += kRows * a.stride;
    out.data += kRows * out.stride;
  }
  for (; r < n_rows; ++r) {
    block<1, C>(a, b, n, out);
    a.data += a.stride;
    out.data += out.stride;
  }
}

// Whole register blocks, then single columns.
void all_columns(int n_rows, Left a, Right b, int n, Out out) {
  while (out.n_columns > 0) {
    const int columns = out.n_columns > (kColumns - 1) * kLanes ? kColumns : 1;
    if (columns == kColumns)
      rows_of_block<kColumns>(n_rows, a, b, n, out);
    else
      rows_of_block<1>(n_rows, a, b, n, out);
    b.data += columns * b.column_stride;
    out.data += columns * kLanes;
    out.n_columns -= columns * kLanes;
  }
}

// The columns of v past its last whole 16, one by one: reading 16 lanes there would leave it.
void last_columns(int n_rows, Left p, const float* v, std::int64_t v_stride, int n_keys, int width,
                  float* out, std::int64_t out_stride) {
  for (int r = 0; r < n_rows; ++r) {
    for (int c = width / kLanes * kLanes; c < width; ++c) {
      float total = 0;
      for (int first = 0; first < n_keys; first += kTerms) {
        float sum = 0;
        for (int j = first; j < std::min(n_keys, first + kTerms); ++j)
          sum += p.data[r * p.stride + j] * v[j * v_stride + c];
        total += sum;
      }
      out[r * out_stride + c] = total;
    }
  }
}

}  // namespace

void score_rows(const float* q, std::int64_t q_stride, int n_rows, int width, float scale,
                const float* panels, int n_keys, float* scores, std::int64_t stride) {
  const Right b{panels, kLanes, std::int64_t{width} * kLanes};
  all_columns(n_rows, {q, q_stride}, b, width, {scores, stride, n_keys, scale, false});
}

void mix_values(const float* p, std::int64_t p_stride, int n_rows, int n_keys, const float* v,
                std::int64_t v_stride, int width, float* out, std::int64_t out_stride) {
  const int whole = width / kLanes * kLanes;
  for (int first = 0; first < n_keys; first += kTerms) {
    const int n = std::min(kTerms, n_keys - first);
    const Right b{v + first * v_stride, v_stride, kLanes};
    all_columns(n_rows, {p + first, p_stride}, b, n, {out, out_stride, whole, 1.0f, first > 0});
  }
  if (whole < width)
    last_columns(n_rows, {p, p_stride}, v, v_stride, n_keys, width, out, out_stride);
}

}  // namespace sinkscope::SINKSCOPE_ISA
