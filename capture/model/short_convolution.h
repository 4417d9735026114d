// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/ATen.h>

// Causal convolutions over a few tokens, each channel by itself; tokens before the first are 0.
namespace sinkscope {

// Σ_j w[c, K−1−j] u[t−j·step, c], in u's type: u [1, T, C], w [C, K]; the last tap is the current
// token.
at::Tensor short_convolution(const at::Tensor& u, const at::Tensor& w, std::int64_t step = 1);

// (u + short_convolution(u)) / √(K + 1), in float32, back in u's type.
at::Tensor residual_convolution(const at::Tensor& u, const at::Tensor& w);

// (u_t + Σ_j (w[j, c] + own[t, g, j]) u[t−j, c]) / √(2K + 1) with taps that each token has of its
// own for each group of channels: u [1, T, C], w [K, C], own [1, T, G, K]; the first tap is the
// current token. In float32, back in u's type.
at::Tensor dynamic_convolution(const at::Tensor& u, const at::Tensor& w, const at::Tensor& own);

}  // namespace sinkscope
