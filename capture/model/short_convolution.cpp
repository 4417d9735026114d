// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/model/short_convolution.h"

#include <cmath>

namespace sinkscope {
namespace {

at::Tensor with_zeros_before(const at::Tensor& u, std::int64_t n) {
  return at::cat({at::zeros({1, n, u.size(2)}, u.options()), u}, 1);
}

}  // namespace

at::Tensor short_convolution(const at::Tensor& u, const at::Tensor& w, std::int64_t step) {
  const std::int64_t taps = w.size(1), T = u.size(1);
  const at::Tensor padded = with_zeros_before(u, (taps - 1) * step);
  at::Tensor sum = padded.narrow(1, 0, T) * w.select(1, 0);
  for (std::int64_t tap = 1; tap < taps; ++tap)
    sum.addcmul_(padded.narrow(1, tap * step, T), w.select(1, tap));
  return sum;
}

at::Tensor residual_convolution(const at::Tensor& u, const at::Tensor& w) {
  const at::Tensor x = u.to(at::kFloat);
  const double scale = 1 / std::sqrt(static_cast<double>(w.size(1) + 1));
  return short_convolution(x, w).add_(x).mul_(scale).to(u.scalar_type());
}

at::Tensor dynamic_convolution(const at::Tensor& u, const at::Tensor& w, const at::Tensor& own) {
  const std::int64_t taps = w.size(0), T = u.size(1), groups = own.size(2);
  const at::Tensor x = u.to(at::kFloat);
  const at::Tensor padded = with_zeros_before(x, taps - 1).unflatten(-1, {groups, -1});
  const at::Tensor fixed = w.unflatten(-1, {groups, -1}), added = own.to(at::kFloat);
  at::Tensor sum = x.unflatten(-1, {groups, -1}).clone();
  for (std::int64_t tap = 0; tap < taps; ++tap)
    sum.addcmul_(padded.narrow(1, taps - 1 - tap, T),
                 fixed.select(0, tap) + added.narrow(-1, tap, 1));
  const double scale = 1 / std::sqrt(static_cast<double>(2 * taps + 1));
  return sum.mul_(scale).flatten(-2).to(u.scalar_type());
}

}  // namespace sinkscope
