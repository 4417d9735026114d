// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/model/norm.h"

#include <ATen/Parallel.h>

#include <optional>

#include "capture/model/row_math.h"

namespace sinkscope {
namespace {

// Rows of the last dimension, all the same distance apart, or undefined.
std::optional<std::int64_t> row_stride(const at::Tensor& x) {
  if (!is_plain(x) || x.dim() < 2) return std::nullopt;
  for (std::int64_t i = x.dim() - 2; i > 0; --i)
    if (x.size(i - 1) > 1 && x.stride(i - 1) != x.stride(i) * x.size(i)) return std::nullopt;
  return x.stride(-2);
}

at::Tensor rms_norm_on_cpu(const at::Tensor& x, std::int64_t stride, const at::Tensor& gain,
                           double eps) {
  at::Tensor y = at::empty(x.sizes(), x.options());
  const std::int64_t width = x.size(-1), n_rows = width > 0 ? x.numel() / width : 0;
  const float *from = x.const_data_ptr<float>(), *w = gain.const_data_ptr<float>();
  float* to = y.data_ptr<float>();
  at::parallel_for(0, n_rows, 32, [&](std::int64_t begin, std::int64_t end) {
    rms_norm_rows(from + begin * stride, stride, end - begin, static_cast<int>(width), w, eps,
                  to + begin * width, width);
  });
  return y;
}

at::Tensor layer_norm(const Norm& norm, const at::Tensor& x) {
  const at::Tensor h = x.to(at::kFloat);
  return at::layer_norm(h, {h.size(-1)}, norm.gain, norm.bias, norm.eps).to(x.scalar_type());
}

}  // namespace

bool is_plain(const at::Tensor& x) {
  return x.is_cpu() && x.scalar_type() == at::kFloat && x.stride(-1) == 1;
}

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& gain, double eps) {
  if (const auto stride = row_stride(x)) return rms_norm_on_cpu(x, *stride, gain, eps);
  const at::Tensor h = x.to(at::kFloat);
  const auto width = static_cast<double>(h.size(-1));
  const at::Tensor scale = h.norm(2, -1, /*keepdim=*/true).square_().div_(width).add_(eps).rsqrt_();
  return h.mul(scale).mul_(gain).to(x.scalar_type());
}

at::Tensor unit_rms(const at::Tensor& x, double eps) {
  const at::Tensor h = x.to(at::kFloat);
  return (h * (h.square().mean(-1, /*keepdim=*/true) + eps).rsqrt()).to(x.scalar_type());
}

NormOutput apply_norm(const Norm& norm, const at::Tensor& x) {
  const at::Tensor y =
      norm.kind == NormKind::layer_norm ? layer_norm(norm, x) : rms_norm(x, norm.gain, norm.eps);
  if (!norm.gate_up.defined()) return {y, {}};
  const at::Tensor seen = y.to(at::kFloat);
  const at::Tensor gate =
      at::silu(seen.matmul(norm.gate_down.t())).matmul(norm.gate_up.t()).sigmoid();
  return {(seen * gate).to(x.scalar_type()), gate};
}

at::Tensor activate(Activation activation, const at::Tensor& x) {
  switch (activation) {
    case Activation::silu:
      return at::silu(x);
    case Activation::gelu:
      return at::gelu(x);
    case Activation::gelu_tanh:
      return at::gelu(x, "tanh");
    case Activation::relu:
      return at::relu(x);
  }
  return x;
}

at::Tensor silu_times(const at::Tensor& gate, const at::Tensor& up) {
  const auto gate_stride = row_stride(gate), up_stride = row_stride(up);
  if (!gate_stride || !up_stride) return at::silu(gate).mul_(up);
  at::Tensor y = at::empty(gate.sizes(), gate.options());
  const std::int64_t width = gate.size(-1);
  const float *g = gate.const_data_ptr<float>(), *u = up.const_data_ptr<float>();
  float* to = y.data_ptr<float>();
  at::parallel_for(0, width > 0 ? gate.numel() / width : 0, 16,
                   [&](std::int64_t begin, std::int64_t end) {
                     for (std::int64_t r = begin; r < end; ++r)
                       silu_times(g + r * *gate_stride, u + r * *up_stride, width, to + r * width);
                   });
  return y;
}

at::Tensor gated_unit(Activation activation, const at::Tensor& gate, const at::Tensor& up) {
  if (!up.defined()) return activate(activation, gate);
  return activation == Activation::silu ? silu_times(gate, up)
                                        : activate(activation, gate).mul_(up);
}

}  // namespace sinkscope
