// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/tokenizer/byte_alphabet.h"

#include <array>
#include <cstdint>

#include "capture/tokenizer/unicode.h"

namespace sinkscope {
namespace {

constexpr char32_t kFirstMoved = 0x100;
constexpr int kMoved = 68;

struct Alphabet {
  std::array<std::string, 256> spelling;
  std::array<unsigned char, kFirstMoved + kMoved> byte_of{};  // valid where `known`
  std::array<bool, kFirstMoved + kMoved> known{};

  Alphabet() {
    char32_t moved = kFirstMoved;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const bool is_itself =
          (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
      const char32_t code = is_itself ? byte : moved++;
      spelling[byte] = to_utf8(code);
      byte_of[code] = static_cast<unsigned char>(byte);
      known[code] = true;
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet made;
  return made;
}

}  // namespace

void append_byte_level(std::string& out, std::string_view bytes) {
  const Alphabet& table = alphabet();
  for (const char c : bytes) out += table.spelling[static_cast<unsigned char>(c)];
}

std::string from_byte_level(std::string_view piece) {
  const Alphabet& table = alphabet();
  std::string bytes;
  for (std::int64_t at = 0; at < static_cast<std::int64_t>(piece.size());) {
    const Utf8Char c = utf8_at(piece, at);
    if (c.is_valid && c.code < table.known.size() && table.known[c.code])
      bytes += static_cast<char>(table.byte_of[c.code]);
    else
      bytes += slice(piece, {at, at + c.size});
    at += c.size;
  }
  return bytes;
}

}  // namespace sinkscope
