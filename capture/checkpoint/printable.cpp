// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/printable.h"

#include <fmt/format.h>

#include <algorithm>

namespace sinkscope {

std::string printable(std::string_view text) {
  constexpr std::size_t kLongest = 120;
  std::string clean;
  for (const char c : text.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) {
      clean += fmt::format("\\x{:02X}", byte);
    } else {
      clean += c;
    }
  }
  if (text.size() > kLongest) clean += "...";
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
