// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/ATen.h>

#include <cstdint>

// Logits by distance, r_i · profiles[:, i − j] for 0 ≤ i − j < E, for both bodies of attention.
namespace sinkscope {

// Of rows r [n, heads, d_r] from position `row` on and keys [key_begin, key_end), 0 beyond the
// profiles' length: [heads, n, keys].
at::Tensor relative_logits(const at::Tensor& r, const at::Tensor& profiles, int row, int key_begin,
                           int key_end);

// The same for one head, in plain floats.
struct DistanceProfiles {
  const float* r;  // of the first row; `stride` floats from row to row
  std::int64_t stride;
  int d_r;
  const float* far_to_near;  // [d_r, extent], the last one is distance 0
  int extent;
};

// Adds them to scores [n_rows, stride], whose first row is the query `row` and first column the key
// `key_begin`, up to each query's own key.
void add_relative_logits(const DistanceProfiles& profiles, int row, int n_rows, int key_begin,
                         float* scores, std::int64_t stride);

}  // namespace sinkscope
