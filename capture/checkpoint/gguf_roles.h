// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "capture/checkpoint/gguf_config.h"

namespace sinkscope {

class GgufFile;
struct GgufFamily;

// Presence of optional tensors decides these parts of the spec; called before the roles are filled.
void note_optional_tensors(const GgufFile& file, ArchSpec& spec);

// Gives the tensors of a file of a known family their roles, as RoleAssignment does. Where the
// sizes contradict each other only the norms get theirs. `where` names the file in messages.
void add_roles(const GgufFile& file, const GgufFamily& family, const std::string& where,
               GgufModel& model);

// Gives the norm weights of any other file their roles by name (blk.N.attn_norm, ffn_norm,
// post_attention_norm, post_ffw_norm, attn_q_norm, attn_k_norm, output_norm).
// `stored_offset`: what the converter added to them.
void add_norm_roles(const GgufFile& file, float stored_offset, GgufModel& model);

}  // namespace sinkscope
