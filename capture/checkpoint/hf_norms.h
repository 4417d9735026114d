// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "capture/checkpoint/checkpoint.h"
#include "capture/checkpoint/hf_config.h"
#include "capture/checkpoint/role_table.h"

namespace sinkscope {

// For architectures that cannot be run: the norms (and the embedding) that can be told by name
// where the layout is Llama-like, whatever comes before "layers.". Fills in n_layers, d_model and
// norm_kind where the config does not say. Norms without a role are named in a warning. Matrices
// that have a Llama's names get those roles, so that a file for --arch has less to describe; which
// of a Llama's are missing and how many tensors have no role becomes an obstacle.
RoleTable assign_hf_norms(HfConfig& config, const Checkpoint& checkpoint);

}  // namespace sinkscope
