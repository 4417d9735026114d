// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

namespace sinkscope {

class GgufFile;

// The metadata as indented JSON, keys in file order. Vocabulary lists and other long values appear
// as their length: "49152 entries". Bytes that are no UTF-8 become U+FFFD.
std::string gguf_config_text(const GgufFile& file);

}  // namespace sinkscope
