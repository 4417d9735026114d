// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>

#include "capture/checkpoint/hf_names.h"

namespace sinkscope {

// The shape of a role that only models with several residual streams have: their mixes, hashed
// n-grams, compressed keys. nullopt for every other role.
std::optional<ExpectedShape> stream_role_shape(Role role, const ArchSpec& spec, int layer);

}  // namespace sinkscope
