// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/model/linear.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <optional>

namespace sinkscope {
namespace {

using PointwiseLinear = at::Tensor(const at::Tensor&, const at::Tensor&,
                                   const std::optional<at::Tensor>&, c10::string_view,
                                   c10::List<std::optional<at::Scalar>>,
                                   std::optional<c10::string_view>);

// LibTorch's operator that hands a plain float32 linear layer to oneDNN; empty where this LibTorch
// has none or another signature.
std::optional<c10::TypedOperatorHandle<PointwiseLinear>> find_onednn_linear() {
  const auto op = c10::Dispatcher::singleton().findSchema({"mkldnn::_linear_pointwise", ""});
  if (!op || !op->hasKernelForDispatchKey(c10::DispatchKey::CPU)) return std::nullopt;
  try {
    return op->typed<PointwiseLinear>();
  } catch (const c10::Error&) {
    return std::nullopt;
  }
}

}  // namespace

at::Tensor linear_layer(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b) {
  static const auto onednn = find_onednn_linear();
  if (!onednn || !x.is_cpu() || x.scalar_type() != at::kFloat) return at::linear(x, w, b);
  const std::optional<at::Tensor> bias = b.defined() ? std::optional(b) : std::nullopt;
  return onednn->call(x, w, bias, "none", c10::List<std::optional<at::Scalar>>(), "");
}

}  // namespace sinkscope
