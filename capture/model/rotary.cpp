// SPDX-License-Identifier: GPL-3.0-or-later
#include <ATen/Parallel.h>

#include "capture/model/forward.h"
#include "capture/model/row_math.h"

namespace sinkscope {
namespace {

// One position at a time; the heads of a position lie anywhere in a wider matrix.
at::Tensor rotate_on_cpu(const at::Tensor& x, const RotaryTable& rotary) {
  const std::int64_t T = x.size(1), n = rotary.cos.size(-1);
  at::Tensor y = at::empty(x.sizes(), x.options());
  const float *from = x.const_data_ptr<float>(), *cos = rotary.cos.const_data_ptr<float>(),
              *sin = rotary.sin.const_data_ptr<float>();
  float* to = y.data_ptr<float>();
  at::parallel_for(0, T, 64, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t t = begin; t < end; ++t)
      rotate_heads(from + t * x.stride(1), x.stride(2), static_cast<int>(x.size(2)),
                   static_cast<int>(x.size(3)), cos + t * n, sin + t * n, static_cast<int>(n),
                   to + t * y.stride(1), y.stride(2));
  });
  return y;
}

}  // namespace

at::Tensor rotate(const at::Tensor& x, const RotaryTable& rotary) {
  const std::int64_t n = rotary.cos.size(-1), half = n / 2;
  if (n == 0) return x;
  if (is_plain(x) && x.size(0) == 1) return rotate_on_cpu(x, rotary);
  const at::Tensor a = x.narrow(-1, 0, half), b = x.narrow(-1, half, half);
  const at::Tensor turned = (x.narrow(-1, 0, n) * rotary.cos)
                                .addcmul_(at::cat({b, a}, -1), rotary.sin)
                                .to(x.scalar_type());
  const std::int64_t rest = x.size(-1) - n;
  return rest > 0 ? at::cat({turned, x.narrow(-1, n, rest)}, -1) : turned;
}

RotaryTable rotary_table(const RopeFrequencies& frequencies, int seq_len, at::Device device) {
  const auto half = static_cast<std::int64_t>(frequencies.inverse.size());
  const at::Tensor inverse = at::tensor(frequencies.inverse, at::kFloat);
  const at::Tensor positions = at::arange(seq_len, at::kFloat);
  const at::Tensor angles = at::outer(positions, inverse).view({seq_len, 1, half});
  const at::Tensor cos = angles.cos() * frequencies.attention_scaling,
                   sin = angles.sin() * frequencies.attention_scaling;
  return {at::cat({cos, cos}, -1).to(device), at::cat({-sin, sin}, -1).to(device)};
}

}  // namespace sinkscope
