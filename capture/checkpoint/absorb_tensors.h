// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "capture/checkpoint/absorb.h"
#include "capture/checkpoint/safetensors_writer.h"

namespace sinkscope {

struct AbsorbedTensor {
  Role role = Role::embed;
  int layer = kNoLayer;
  TensorToWrite tensor;
};

// Every role of the model as a tensor of its own with dimensions transferred, the gains in front of
// the norms included; norms' gains are the effective ones. `name_of` names them. The tensors read
// from `model` and `absorption`, which must outlive them.
std::vector<AbsorbedTensor> absorbed_tensors(
    const ModelFiles& model, const Absorption& absorption,
    const std::function<std::string(Role role, int layer)>& name_of);

}  // namespace sinkscope
