// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace sinkscope {

// The streamed statistics of one site of one layer and one run: what stats/<hook> holds.

// Per dimension, over one part of the tokens (the first one, or the rest). Arrays [D].
// mean and central sums m2 = Σ(x−μ)², m3, m4 are accumulated in double per tile of rows and merged
// after Pébay (2008), so a channel with mean 14,600 and deviation 1 keeps its digits. NaN and
// infinity are left out of everything but n_nan and n_inf.
struct DimStats {
  std::vector<double> count, mean, m2, m3, m4, mean_abs, max_abs;
  std::vector<std::int32_t> max_token, argmax_count;  // -1: no finite value
  explicit DimStats(int width);
};

// Per token. Arrays [T]. r2 = h_d² / ‖h‖² of the largest dimension d.
struct TokenStats {
  std::vector<double> rms, max_abs, r2;
  std::vector<std::int32_t> max_dim, n_nan, n_inf;
  explicit TokenStats(int seq_len);
};

struct TapStats {
  DimStats first, rest;
  TokenStats token;
  TapStats(int seq_len, int width) : first(width), rest(width), token(seq_len) {}
};

// How work is spread: calls body(begin, end) for disjoint parts of [0, n) of about `grain` items;
// results never depend on how.
using RangeBody = std::function<void(std::int64_t begin, std::int64_t end)>;
using ParallelFor = std::function<void(std::int64_t n, std::int64_t grain, const RangeBody& body)>;
void serial_for(std::int64_t n, std::int64_t grain, const RangeBody& body);

// Statistics of x [seq_len, width], row stride in floats.
TapStats tap_stats(const float* x, int seq_len, int width, std::int64_t stride,
                   const ParallelFor& parallel = serial_for);

// Element (n−1)/2 of the n = seq_len·width sorted |x|; NaN sorts last.
double median_abs(const float* x, int seq_len, int width, std::int64_t stride,
                  const ParallelFor& parallel = serial_for);

}  // namespace sinkscope
