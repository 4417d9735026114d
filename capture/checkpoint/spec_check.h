// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

#include "capture/checkpoint/arch_spec.h"

namespace sinkscope {

// The first thing in which the sizes of a spec contradict each other or are beyond belief, as a
// sentence in ArchSpec's words; "" where they agree. A spec that passes gives shapes without
// overflow and lists that reach every layer.
std::string contradiction(const ArchSpec& spec);

}  // namespace sinkscope
