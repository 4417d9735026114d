// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

namespace sinkscope {

// The two products of a block of attention rows, plain C++ over float rows, no Torch; compiled for
// several instruction sets and chosen at run time. A BLAS would start a team of threads for each of
// these small blocks and pack every key anew for each of them. Sums run over fixed blocks in a
// fixed order: the same input gives the same bits, whatever the number of threads.

inline constexpr int kPanelKeys = 16;

// Floats that pack_keys() fills: whole panels of kPanelKeys keys.
std::int64_t panel_floats(int n_keys, int width);

// Keys [n_keys, stride] of one head -> panels [ceil(n_keys / 16), width, 16]; 0 past the last key.
void pack_keys(const float* keys, std::int64_t stride, int n_keys, int width, float* panels);

// scores [n_rows, n_keys] = scale · q kᵀ, q [n_rows, width]. `panels` starts at key 0 of the
// block, a multiple of kPanelKeys of the packed ones. Nothing past column n_keys is written.
void score_rows(const float* q, std::int64_t q_stride, int n_rows, int width, float scale,
                const float* panels, int n_keys, float* scores, std::int64_t stride);

// out [n_rows, width] = p [n_rows, n_keys] · v [n_keys, width].
void mix_values(const float* p, std::int64_t p_stride, int n_rows, int n_keys, const float* v,
                std::int64_t v_stride, int width, float* out, std::int64_t out_stride);

}  // namespace sinkscope
