// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

namespace sinkscope {

// What happens between the products of a block, one pass over memory each where a tensor library
// takes three. Plain C++ over float rows, no Torch; compiled for several instruction sets and
// chosen at run time. Every sum runs in a fixed order.

// y = gain · x / √(mean(x²) + eps) for rows [n_rows, width]; sums in float over 256 values, in
// double beyond. x and y may be the same.
void rms_norm_rows(const float* x, std::int64_t x_stride, std::int64_t n_rows, int width,
                   const float* gain, double eps, float* y, std::int64_t y_stride);

// Rotate-half of one position's heads [n_heads, width] by its angles: the first n of each head are
// (a, b) -> (a·cos − b·sin, b·cos + a·sin), a and b the two halves of the n; the others are copied.
// cos and sin [n], sin with the sign of the first half: [−sin | sin].
void rotate_heads(const float* x, std::int64_t x_stride, int n_heads, int width, const float* cos,
                  const float* sin, int n, float* y, std::int64_t y_stride);

// y = silu(gate) · up = gate / (1 + e^−gate) · up, n values.
void silu_times(const float* gate, const float* up, std::int64_t n, float* y);

// Σ e^(z − lse) (z − other) over n values, lse = ln Σ e^z: by how much other logits fall short on
// average under the softmax of z. Equal values give 0.
double mean_gap(const float* z, const float* other, std::int64_t n, double lse);

}  // namespace sinkscope
