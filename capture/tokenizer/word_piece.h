// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "capture/tokenizer/piece_model.h"
#include "capture/tokenizer/prefix_index.h"
#include "capture/tokenizer/vocabulary.h"

namespace sinkscope {

struct WordPieceOptions {
  // How the vocabulary spells a piece at the beginning of a word and inside one: "" and "##" in
  // Hugging Face's files, "▁" and "" in GGUF. With "" every piece can begin a word or go on.
  std::string first_prefix, inner_prefix = "##";
  std::int64_t max_characters = 100;  // of a word; longer ones are unknown
  int unk_id = -1;
};

// WordPiece: the longest piece from the left, again and again; a word with any rest that is no
// piece is one unknown token.
class WordPieceModel : public PieceModel {
 public:
  // `vocabulary` must outlive the model.
  WordPieceModel(const Vocabulary& vocabulary, WordPieceOptions options);
  std::int64_t encode(std::string_view word, std::vector<int>& ids) const override;

 private:
  WordPieceOptions options_;
  PrefixIndex first_, inner_;
};

// Words that are tokens as they are, or unknown.
class WordLevelModel : public PieceModel {
 public:
  WordLevelModel(const Vocabulary& vocabulary, int unk_id)
      : vocabulary_(vocabulary), unk_id_(unk_id) {}
  std::int64_t encode(std::string_view word, std::vector<int>& ids) const override;

 private:
  const Vocabulary& vocabulary_;
  int unk_id_;
};

}  // namespace sinkscope
