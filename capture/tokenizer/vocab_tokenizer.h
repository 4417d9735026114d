// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

#include "capture/tokenizer/added_tokens.h"
#include "capture/tokenizer/bpe.h"
#include "capture/tokenizer/pre_tokenizer.h"
#include "capture/tokenizer/sentencepiece_bpe.h"
#include "capture/tokenizer/text_normalizer.h"
#include "capture/tokenizer/tokenizer.h"
#include "capture/tokenizer/unigram.h"
#include "capture/tokenizer/vocabulary.h"
#include "capture/tokenizer/word_piece.h"

namespace sinkscope {

// What a file says about a tokenizer beside how it cuts text.
struct TokenizerFacts {
  std::string name;
  int bos_id = -1;
  std::vector<int> prefix, suffix;    // what surrounds every text where the user does not say
  std::vector<int> special_ids;       // special besides the special added tokens
  std::vector<std::string> warnings;  // go with every encoding
};

// What all tokenizers share: BOS rules, added tokens, names of ids.
class VocabTokenizer : public Tokenizer {
 public:
  VocabTokenizer(std::vector<std::string> pieces, std::vector<AddedToken> added,
                 TextNormalizer normalizer, TokenizerFacts facts);

  Encoding encode(std::string_view text, BosRule bos) const final;
  int vocab_size() const final { return vocab_size_; }
  int bos_id() const final { return facts_.bos_id; }
  const std::string& name() const final { return facts_.name; }
  std::string raw_piece(int id) const final;
  std::string bytes(int id) const final;
  bool is_special(int id) const final { return special_.contains(id); }
  int added_id(std::string_view content) const final;

 protected:
  // Appends the ids of normalized text between added tokens; returns how many characters the
  // vocabulary cannot say.
  virtual std::int64_t encode_fragment(const Fragment& fragment, std::vector<int>& ids) const = 0;
  // The bytes of a piece that is no added token.
  virtual std::string piece_bytes(int id) const = 0;

  const Vocabulary vocabulary_;

 private:
  Encoding encode_text(std::string_view text, BosRule bos) const;
  std::vector<int> prefix_for(BosRule bos) const;

  AddedTokens added_;
  std::unordered_map<int, std::string> added_content_;
  std::unordered_set<int> special_;
  TokenizerFacts facts_;
  int vocab_size_ = 0;
};

// How pieces spell text.
enum class PieceSpelling {
  plain,
  byte_level,  // GPT-2's alphabet
  space_mark,  // "▁" is a space
  word_piece,  // a piece without the inner prefix begins a word, after a space
};

struct BpeRules {
  std::vector<BpeModel::Merge> merges;
  BpeOptions options;
};
struct WordLevelRules {
  int unk_id = -1;
};
using ModelRules = std::variant<BpeRules, UnigramPieces, WordPieceOptions, WordLevelRules>;

// normalizer -> pre-tokenizer -> model, as tokenizer.json has it.
struct PipelineParts {
  std::vector<std::string> pieces;
  ModelRules model;
  std::vector<AddedToken> added;
  TextNormalizer normalizer;
  PreTokenizer pre_tokenizer;
  PieceSpelling spelling = PieceSpelling::plain;
  std::string space_mark = std::string(kSpaceMark);  // of PieceSpelling::space_mark
  bool has_byte_tokens = false;                      // "<0x0A>" stands for a byte
};

// Throws Error{corrupt} as BpeModel and UnigramModel do.
std::unique_ptr<Tokenizer> make_pipeline_tokenizer(PipelineParts parts, TokenizerFacts facts);

struct SentencePieceParts {
  std::vector<std::string> pieces;
  std::vector<float> scores;     // of every piece
  std::vector<TokenType> types;  // of every piece
  std::vector<AddedToken> added;
  int unk_id = -1;
  bool add_space_prefix = true;  // at the beginning and after every added token
};

std::unique_ptr<Tokenizer> make_sentencepiece_tokenizer(SentencePieceParts parts,
                                                        TokenizerFacts facts);

}  // namespace sinkscope
