// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "capture/checkpoint/model_files.h"

// What the first block reads, and what every block reads beside the stream.
namespace sinkscope {

// Embedding rows of the ids [T], scaled, plus learned positions and the token type, normed where
// the model does so -> [1, T, D]; only these rows are read.
at::Tensor embed(const ModelFiles& model, const std::vector<int>& ids, at::Device device,
                 at::ScalarType dtype);

// A small input of its own for every layer and token, from the token and from what embed() gave:
//   (N(W_p x / √D) + E_l[tok] √P) / √2, [1, T, L, P], and N(…) in it; undefined where the model has
// none.
struct LayerInputs {
  at::Tensor inputs, normed;
};
LayerInputs layer_inputs(const ModelFiles& model, const std::vector<int>& ids,
                         const at::Tensor& embedded);

}  // namespace sinkscope
