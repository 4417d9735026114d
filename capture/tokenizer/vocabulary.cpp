// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/tokenizer/vocabulary.h"

#include <algorithm>

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
  std::vector<int> ids(256, -1);
  for (int id = 0; id < vocabulary.size(); ++id) {
    const int byte = byte_of_piece(vocabulary.piece(id));
    if (byte >= 0) ids[static_cast<std::size_t>(byte)] = id;
  }
  return ids;
}

bool has_all_bytes(const std::vector<int>& byte_ids, std::string_view text) {
  return !byte_ids.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return byte_ids[static_cast<unsigned char>(c)] >= 0;
  });
}

}  // namespace sinkscope
