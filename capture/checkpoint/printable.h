// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sinkscope {

// Whether the bytes are well-formed UTF-8 (no overlong forms, no surrogates).
bool is_utf8(std::string_view text);

// Text out of a stranger's file, fit for a one-line message in UTF-8: control characters and, where
// the text is not UTF-8, every byte that is not ASCII as \xNN; cut after 120 bytes.
std::string printable(std::string_view text);

// "a, b, c and 4 more": at most `limit` names, each made printable.
std::string listed(const std::vector<std::string>& names, int limit = 8);

// "[96, 64]"; "[]" for a scalar.
std::string shape_text(const std::vector<std::int64_t>& shape);

}  // namespace sinkscope
