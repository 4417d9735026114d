// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/model/relative_logits.h"

#include <algorithm>

namespace sinkscope {

at::Tensor relative_logits(const at::Tensor& r, const at::Tensor& profiles, int row, int key_begin,
                           int key_end) {
  const std::int64_t n = r.size(0), extent = profiles.size(1);
  const auto options = at::TensorOptions().dtype(at::kLong).device(r.device());
  const at::Tensor i = at::arange(row, row + n, options).unsqueeze(1);
  const at::Tensor distance =
      i - at::arange(key_begin, key_end, options).unsqueeze(0);  // [n, keys]
  const at::Tensor within = distance.ge(0).logical_and(distance.lt(extent));
  const at::Tensor by_distance = r.transpose(0, 1).matmul(profiles);  // [heads, n, E]
  const at::Tensor index = distance.clamp(0, extent - 1).unsqueeze(0).expand({r.size(1), -1, -1});
  return by_distance.gather(-1, index).masked_fill(within.logical_not(), 0.0);
}

void add_relative_logits(const DistanceProfiles& profiles, int row, int n_rows, int key_begin,
                         float* scores, std::int64_t stride) {
  for (int k = 0; k < n_rows; ++k) {
    const int query = row + k, first = std::max(key_begin, query - profiles.extent + 1);
    const std::int64_t n = query - first + 1;
    float* to = scores + k * stride + (first - key_begin);
    for (int d = 0; d < profiles.d_r; ++d) {
      const float r = profiles.r[k * profiles.stride + d];
      const float* from = profiles.far_to_near + std::int64_t{d + 1} * profiles.extent - n;
      for (std::int64_t j = 0; j < n; ++j) to[j] += r * from[j];
    }
  }
}

}  // namespace sinkscope
