// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "capture/checkpoint/gguf_file.h"

namespace sinkscope {

// Writes a GGUF file of these metadata alone, no tensors: those keys of `file` that begin with one
// of `prefixes`, values as they are (integers as 64 bits, floats as doubles). Throws Error{io}.
void write_gguf_metadata(const GgufFile& file, const std::vector<std::string>& prefixes,
                         const std::string& path);

}  // namespace sinkscope
