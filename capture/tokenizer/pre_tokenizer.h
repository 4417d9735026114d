// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "capture/tokenizer/regex.h"
#include "capture/tokenizer/unicode.h"

namespace sinkscope {

// A text cut into pieces, each of which the model merges on its own.
struct Pieces {
  std::string text;
  std::vector<Span> spans;  // in order, none empty; removed stretches are in no span
};

// What becomes of a delimiter, as in tokenizer.json.
enum class SplitBehavior { isolated, removed, merged_with_previous, merged_with_next, contiguous };

struct SplitStage {
  Regex delimiter;
  SplitBehavior behavior = SplitBehavior::isolated;
  bool invert = false;  // the gaps are the delimiters
};

// Spells bytes in the ByteLevel alphabet, after an optional GPT-2 split.
struct ByteLevelStage {
  bool add_prefix_space = false;  // to every piece that comes in without one
  bool use_regex = true;
};

// SentencePiece's way in tokenizer.json: spaces become `mark`, one more is put in front of a piece
// that begins without one, and words are cut before it.
struct MetaspaceStage {
  enum class Prepend { always, first, never };  // first: only where nothing is in front
  std::string mark = "\xE2\x96\x81";            // ▁
  Prepend prepend = Prepend::always;
  bool split = true;
};

// A row of stages, each cutting the pieces of the one before. Const members are thread-safe.
class PreTokenizer {
 public:
  using Stage = std::variant<SplitStage, ByteLevelStage, MetaspaceStage>;

  PreTokenizer() : gpt2_(gpt2_pattern()) {}
  template <class S>
  void add(S stage) {
    stages_.emplace_back(std::in_place_type<S>, std::move(stage));
  }

  // `place`: whether anything is in front of the text.
  enum class Place { begin, middle };
  Pieces run(std::string_view text, Place place = Place::begin) const;
  // Whether pieces come out in the ByteLevel alphabet, or with spaces as marks ("" = they do not).
  bool is_byte_level() const;
  std::string space_mark() const;

  static const char* gpt2_pattern();

 private:
  void split(Pieces& pieces, const Regex& delimiter, SplitBehavior behavior, bool invert) const;
  void byte_level(Pieces& pieces, const ByteLevelStage& stage) const;
  static void metaspace(Pieces& pieces, const MetaspaceStage& stage, Place place);

  Regex gpt2_;
  std::vector<Stage> stages_;
};

// White space removed, every punctuation mark alone (BERT).
PreTokenizer make_bert_pre_tokenizer();
// ASCII punctuation and symbols, and \p{P}.
const char* punctuation_pattern();

// How GGUF's tokenizer.ggml.pre and tokenizer.json's families cut text.
struct SplitRule {
  const char* name;              // "gpt-2", "llama3", "qwen2", "smollm", "gpt-4o"
  std::vector<const char*> aka;  // other spellings of tokenizer.ggml.pre
  const char* pattern;           // nullptr: ByteLevel's own
  bool isolate_digits = false;   // each \p{N} alone, before the pattern
  bool nfc = false;
  bool ignore_merges = false;
  bool add_bos = false;  // where the file does not say
};

const std::vector<SplitRule>& split_rules();
// Null when the name is not known.
const SplitRule* find_split_rule(std::string_view name);
// "gpt-2, llama3 (llama-bpe, …), …" for messages.
std::string split_rule_names();
PreTokenizer make_pre_tokenizer(const SplitRule& rule);

}  // namespace sinkscope
