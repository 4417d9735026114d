// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

#include "capture/checkpoint/arch_spec.h"

namespace sinkscope {

// The first thing in which the sizes of a spec contradict each other or are beyond belief, as a
// sentence in ArchSpec's words; "" where they agree. A spec that passes gives shapes without
// overflow and lists that reach every layer.
std::string contradiction(const ArchSpec& spec);

// "" for a base of rotary positions between 1 and 1e15, else "1e-300, expected 1 to 1e+15": below
// 1 frequencies grow with the dimension.
std::string wrong_rope_base(double theta);

}  // namespace sinkscope
