// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "capture/tokenizer/merge.h"
#include "capture/tokenizer/piece_model.h"
#include "capture/tokenizer/vocabulary.h"

namespace sinkscope {

struct BpeOptions {
  bool ignore_merges = false;  // a whole piece that is in the vocabulary is that token
  bool byte_fallback = false;  // an unknown character becomes its "<0xNN>" tokens, if all exist
  bool fuse_unk = false;       // neighboring unknown characters share one unknown token
  int unk_id = -1;             // -1: unknown characters are dropped
};

// Byte pair encoding of single pieces: characters, then merges by rank, leftmost first.
class BpeModel : public PieceModel {
 public:
  using Merge = std::pair<std::string, std::string>;

  // `vocabulary` must outlive the model. Throws Error{corrupt} naming a merge whose parts or
  // result are no tokens.
  BpeModel(const Vocabulary& vocabulary, const std::vector<Merge>& merges, BpeOptions options);

  std::int64_t encode(std::string_view piece, std::vector<int>& ids) const override;

 private:
  struct Ranked {
    int rank, id;
  };
  static std::uint64_t key(int left, int right) {
    return (static_cast<std::uint64_t>(left) << 32) | static_cast<std::uint32_t>(right);
  }

  // The characters of a piece as tokens, unmerged; `dropped` counts those without one.
  std::vector<Symbol> characters(std::string_view piece, std::int64_t& dropped) const;

  const Vocabulary& vocabulary_;
  BpeOptions options_;
  std::unordered_map<std::uint64_t, Ranked> merges_;
  std::vector<int> byte_ids_;  // [256] ids of "<0xNN>" or -1; empty unless byte_fallback
};

}  // namespace sinkscope
