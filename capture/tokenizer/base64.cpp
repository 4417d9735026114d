// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/tokenizer/base64.h"

#include <fmt/format.h>

#include <cstdint>

#include "core/error.h"

namespace sinkscope {
namespace {

int digit(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

}  // namespace

std::string from_base64(std::string_view text) {
  if (text.size() % 4 != 0)
    throw Error(ErrorKind::corrupt,
                fmt::format("base64: {} characters, expected a multiple of 4", text.size()));
  std::size_t padding = 0;
  while (padding < 2 && text.ends_with('=')) {
    text.remove_suffix(1);
    ++padding;
  }
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3 + 3);
  std::uint32_t bits = 0;
  int n_bits = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int value = digit(text[i]);
    if (value < 0)
      throw Error(ErrorKind::corrupt,
                  fmt::format("base64: character {} is none of its alphabet", i));
    bits = (bits << 6) | static_cast<std::uint32_t>(value);
    n_bits += 6;
    if (n_bits < 8) continue;
    n_bits -= 8;
    bytes += static_cast<char>((bits >> n_bits) & 0xFFu);
  }
  return bytes;
}

}  // namespace sinkscope
