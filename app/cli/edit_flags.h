// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "app/cli/console.h"
#include "core/what_if/what_if.h"

namespace sinkscope {

// The edits of repeated --edit flags, each JSON text (beginning with { or [) or the name of a file
// that holds some; "-" is standard input. Throws Error: invalid_argument naming the file,
// not_found, io.
WhatIf read_edits(const std::vector<std::string>& flags, Console& console);

}  // namespace sinkscope
