// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <string_view>

namespace sinkscope {

// The bytes of a base64 text (RFC 4648, with its padding). Throws Error{corrupt} naming the place.
std::string from_base64(std::string_view text);

}  // namespace sinkscope
