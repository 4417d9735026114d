// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

#include "capture/checkpoint/checkpoint.h"
#include "capture/checkpoint/hf_config.h"
#include "capture/checkpoint/role_table.h"

namespace sinkscope {

// Finds the tensor of every role by the family's name for it (Hugging Face's, prefix `model.`
// optional, or those of a file for --arch, whatever the container), holds its
// shape against the config, and completes config.spec with what only tensors know: head_dim,
// n_kv_heads, the tied head, the rotary width. Missing and unexpected tensors and wrong shapes
// become config.obstacles, each with the numbers of both sides; nothing is passed over silently but
// the buffers that old versions saved (rotary_emb.inv_freq and the like).
//
// A role names the place, not the file's word for it: `post_attention_layernorm` is ln2, the norm
// before the MLP, in the Llama family, and no role at all where a `pre_feedforward_layernorm`
// stands beside it. For a family that cannot be run only embeddings and norms are assigned. `where`
// names the index or file in messages.
RoleTable assign_hf_roles(HfConfig& config, const Checkpoint& checkpoint, const std::string& where);

}  // namespace sinkscope
