// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/printable.h"

#include <fmt/format.h>

#include <algorithm>

namespace sinkscope {

bool is_utf8(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if ((lead >= 0x80 && lead < 0xC2) || lead > 0xF4 || text.size() - i < length) return false;
    for (std::size_t j = 1; j < length; ++j) {
      if ((static_cast<unsigned char>(text[i + j]) & 0xC0) != 0x80) return false;
    }
    // Overlong forms, surrogates and code points past U+10FFFF show in the second byte.
    const unsigned second = length > 2 ? static_cast<unsigned char>(text[i + 1]) : 0;
    if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) ||
        (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F)) {
      return false;
    }
    i += length;
  }
  return true;
}

std::string printable(std::string_view text) {
  constexpr std::size_t kLongest = 120;
  const bool is_text = is_utf8(text);
  const auto byte_at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  std::size_t end = std::min(text.size(), kLongest);
  if (is_text) {
    while (end < text.size() && end > 0 && (byte_at(end) & 0xC0) == 0x80) --end;
  }
  std::string clean;
  for (std::size_t i = 0; i < end; ++i) {
    // U+0080 to U+009F are controls of two bytes, C2 80 to C2 9F.
    const bool is_long_control = byte_at(i) == 0xC2 && i + 1 < end && byte_at(i + 1) < 0xA0;
    const bool is_control = byte_at(i) < 0x20 || byte_at(i) == 0x7F;
    if (is_control || (!is_text && byte_at(i) >= 0x80)) {
      clean += fmt::format("\\x{:02X}", byte_at(i));
    } else if (is_long_control) {
      clean += fmt::format("\\u{:04X}", byte_at(++i));
    } else {
      clean += text[i];
    }
  }
  if (end < text.size()) clean += "...";
  return clean;
}

std::string listed(const std::vector<std::string>& names, int limit) {
  const auto shown = std::min(names.size(), static_cast<std::size_t>(std::max(limit, 1)));
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) text += (i == 0 ? "" : ", ") + printable(names[i]);
  if (names.size() > shown) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

}  // namespace sinkscope
