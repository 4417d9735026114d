// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string_view>
#include <vector>

#include "capture/tokenizer/unicode.h"
#include "capture/tokenizer/vocabulary.h"

namespace sinkscope {

inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // ▁

// Token types as GGUF's tokenizer.ggml.token_type (and SentencePiece) count them.
enum class TokenType {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6
};

// SentencePiece BPE from scores: characters, then the neighbors whose joined text is the token of
// highest score merge first, leftmost among equals. Normal, user-defined and unused pieces are
// built; an unused one falls back into what it was made of. What stays without a token becomes its
// bytes, or the unknown token where the vocabulary has no byte tokens.
class SentencePieceBpe {
 public:
  // `vocabulary` must outlive the model; `scores` and `types` have its size. unk_id -1 = none.
  // Throws Error{corrupt} for scores that are not numbers.
  SentencePieceBpe(const Vocabulary& vocabulary, std::vector<float> scores,
                   std::vector<TokenType> types, int unk_id);

  // The longest parts of `text` (in which spaces are "▁") that no token reaches across: its words,
  // unless the vocabulary has pieces with a "▁" behind another character; then all of it.
  std::vector<Span> independent_parts(std::string_view text) const;

  // Appends the ids of a text or an independent part of one.
  // Returns the number of characters dropped for want of any token.
  std::int64_t encode(std::string_view text, std::vector<int>& ids) const;

 private:
  // The piece's id if text may become it, else -1.
  int mergeable(std::string_view piece) const;
  // Appends the bytes of a character without a token, or the unknown token; false: neither.
  bool encode_unknown(std::string_view character, std::vector<int>& ids) const;

  const Vocabulary& vocabulary_;
  std::vector<float> scores_;
  std::vector<TokenType> types_;
  int unk_id_;
  bool has_phrases_ = false;   // a piece reaches across words
  std::vector<int> byte_ids_;  // [256], -1 where there is none
};

}  // namespace sinkscope
