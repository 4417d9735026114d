// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/shell_word.h"

namespace sinkscope {

// "1023 B", "12.3 MiB", "4.0 GiB".
std::string format_bytes(std::int64_t bytes);

// "134,515,008".
std::string format_count(std::int64_t count);

// "0:07", "12:34", "3:05:09".
std::string format_duration(double seconds);

// "[9, 64, 64]"; "scalar" for no dimensions.
std::string format_shape(const std::vector<std::int64_t>& dims);

}  // namespace sinkscope
