// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

namespace sinkscope {

// The text as one word of a POSIX shell: in single quotes where it has to be.
std::string shell_word(const std::string& text);

}  // namespace sinkscope
