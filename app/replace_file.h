// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

namespace sinkscope {

// Copies `from` to `to`, which is the old file or the whole new one at any moment, also when the
// disk is full. Throws Error{io}; what require_output_path throws.
void replace_file(const std::string& from, const std::string& to);

}  // namespace sinkscope
