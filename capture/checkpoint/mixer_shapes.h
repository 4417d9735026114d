// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "capture/checkpoint/hf_names.h"

namespace sinkscope {

// Shapes of what only some token mixers have: MLA (also a shared mixer's query), gated delta-nets,
// logits by distance. The role is one of that mixer's own.
ExpectedShape latent_shape(Role role, const ArchSpec& spec);
ExpectedShape delta_shape(Role role, const ArchSpec& spec);
ExpectedShape relative_shape(Role role, const ArchSpec& spec, int layer);

}  // namespace sinkscope
