// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <string_view>

namespace sinkscope {

// The ByteLevel alphabet of GPT-2: every byte is written as one printable character. Bytes 33..126,
// 161..172 and 174..255 are themselves, the other 68 become U+0100, U+0101, … in order
// (so a space is "Ġ", U+0120).

// Appends the spelling of `bytes` to `out`.
void append_byte_level(std::string& out, std::string_view bytes);

// The bytes a piece spells. Characters outside the alphabet (added tokens) stay as they are.
std::string from_byte_level(std::string_view piece);

}  // namespace sinkscope
