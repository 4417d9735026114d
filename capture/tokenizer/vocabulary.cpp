// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/tokenizer/vocabulary.h"

#include <fmt/format.h>

namespace sinkscope {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

int byte_of_piece(std::string_view piece) {
  if (piece.size() != 6 || piece.substr(0, 3) != "<0x" || piece[5] != '>') return -1;
  const int high = hex_digit(piece[3]), low = hex_digit(piece[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

std::vector<int> all_byte_ids(const Vocabulary& vocabulary) {
  std::vector<int> ids;
  for (int byte = 0; byte < 256; ++byte) {
    const int id = vocabulary.find(fmt::format("<0x{:02X}>", byte));
    if (id < 0) return {};
    ids.push_back(id);
  }
  return ids;
}

}  // namespace sinkscope
