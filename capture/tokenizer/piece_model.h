// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace sinkscope {

// What turns a piece of text into ids: BPE, Unigram, WordPiece, whole words. Const members are
// thread-safe.
class PieceModel {
 public:
  virtual ~PieceModel() = default;
  // Appends the ids of one piece. Returns the number of characters that were dropped, because the
  // vocabulary has neither them nor an unknown token.
  virtual std::int64_t encode(std::string_view piece, std::vector<int>& ids) const = 0;
};

}  // namespace sinkscope
