// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "capture/checkpoint/gguf_file.h"
#include "capture/checkpoint/printable.h"
#include "capture/tokenizer/vocab_tokenizer.h"
#include "core/error.h"

namespace sinkscope {
namespace {

constexpr std::int64_t kNoToken = 0xFFFFFFFF;

std::string key(const char* name) { return fmt::format("tokenizer.ggml.{}", name); }

const std::vector<std::string>& required_texts(const GgufFile& file, const char* name) {
  const auto* values = file.texts(key(name));
  if (values == nullptr)
    throw Error(ErrorKind::corrupt, fmt::format("GGUF metadata: {} is missing", key(name)));
  return *values;
}

// A token id, or `otherwise` where the key is absent; -1 where it says "none".
int token_id(const GgufFile& file, const char* name, int otherwise, int vocab_size) {
  const auto value = file.integer(key(name));
  if (!value) return otherwise < vocab_size ? otherwise : -1;
  if (*value == kNoToken || *value == -1) return -1;
  if (*value < 0 || *value >= vocab_size)
    throw Error(ErrorKind::corrupt, fmt::format("GGUF metadata: {} is {}, of {} tokens", key(name),
                                                *value, vocab_size));
  return static_cast<int>(*value);
}

// Types of all tokens; all normal where the file does not say.
std::vector<TokenType> token_types(const GgufFile& file, int vocab_size) {
  const auto n = static_cast<std::size_t>(vocab_size);
  std::vector<TokenType> types(n, TokenType::normal);
  const auto* values = file.integers(key("token_type"));
  if (values == nullptr) return types;
  if (values->size() != n)
    throw Error(ErrorKind::corrupt, fmt::format("GGUF metadata: {} has {} entries for {} tokens",
                                                key("token_type"), values->size(), vocab_size));
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t type = (*values)[i];
    if (type < 1 || type > 6)
      throw Error(ErrorKind::corrupt, fmt::format("GGUF metadata: {}[{}] is {}, expected 1 to 6",
                                                  key("token_type"), i, type));
    types[i] = static_cast<TokenType>(type);
  }
  return types;
}

// A token that says it is a byte spells it as "<0x0A>": two digits, no sign, nothing else.
void check_byte_tokens(const std::vector<std::string>& pieces,
                       const std::vector<TokenType>& types) {
  for (std::size_t i = 0; i < pieces.size(); ++i)
    if (types[i] == TokenType::byte && byte_of_piece(pieces[i]) < 0)
      throw Error(ErrorKind::corrupt,
                  fmt::format("GGUF metadata: {}[{}]: expected a byte like <0x0A>, found '{}'",
                              key("tokens"), i, printable(pieces[i])));
}

std::vector<AddedToken> added_tokens(const std::vector<std::string>& pieces,
                                     const std::vector<TokenType>& types) {
  std::vector<AddedToken> added;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const bool special = types[i] == TokenType::control || types[i] == TokenType::unknown;
    if (special || types[i] == TokenType::user_defined)
      added.push_back({.id = static_cast<int>(i), .content = pieces[i], .special = special});
  }
  return added;
}

// What a kind of vocabulary assumes where the file is silent.
struct KindDefaults {
  int bos_id, eos_id, unk_id;
  bool add_bos;
};

TokenizerFacts read_facts(const GgufFile& file, std::string name, int vocab_size,
                          const KindDefaults& defaults) {
  TokenizerFacts facts;
  facts.name = std::move(name);
  facts.bos_id = token_id(file, "bos_token_id", defaults.bos_id, vocab_size);
  const int eos_id = token_id(file, "eos_token_id", defaults.eos_id, vocab_size);
  facts.special_ids = {eos_id};
  if (file.boolean(key("add_bos_token")).value_or(defaults.add_bos) && facts.bos_id >= 0)
    facts.prefix = {facts.bos_id};
  if (file.boolean(key("add_eos_token")).value_or(false) && eos_id >= 0) facts.suffix = {eos_id};
  return facts;
}

const SplitRule& split_rule(const GgufFile& file, const std::string& chosen, std::string& spelled) {
  const std::string hint = fmt::format(
      "known: {}; choose with --pre-tokenizer NAME or feed token ids", split_rule_names());
  if (!chosen.empty()) {
    const SplitRule* rule = find_split_rule(chosen);
    if (rule == nullptr)
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("--pre-tokenizer '{}' is not known: {}", chosen, split_rule_names()));
    spelled = chosen;
    return *rule;
  }
  const auto pre = file.text(key("pre"));
  if (!pre)
    throw Error(ErrorKind::unsupported,
                fmt::format("GGUF metadata: {} is missing, so how this vocabulary cuts text is not "
                            "known and not guessed; {}",
                            key("pre"), hint));
  const SplitRule* rule = find_split_rule(*pre);
  if (rule == nullptr)
    throw Error(ErrorKind::unsupported,
                fmt::format("GGUF metadata: {} is '{}', which is not known; {}", key("pre"),
                            printable(*pre), hint));
  spelled = *pre;
  return *rule;
}

std::vector<BpeModel::Merge> read_merges(const GgufFile& file) {
  const std::vector<std::string>& lines = required_texts(file, "merges");
  std::vector<BpeModel::Merge> merges;
  merges.reserve(lines.size());
  for (const std::string& line : lines) {
    const std::size_t space = line.find(' ', 1);
    if (space == std::string::npos || space + 1 >= line.size())
      throw Error(ErrorKind::corrupt,
                  fmt::format("GGUF metadata: {}[{}] is '{}', expected two pieces", key("merges"),
                              merges.size(), printable(line)));
    merges.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  return merges;
}

std::unique_ptr<Tokenizer> open_bpe(const GgufFile& file, const TokenizerOptions& options) {
  std::string spelled;
  const SplitRule& rule = split_rule(file, options.pre_tokenizer, spelled);
  PipelineParts parts;
  parts.pieces = required_texts(file, "tokens");
  const int n = static_cast<int>(parts.pieces.size());
  BpeRules model{.merges = read_merges(file), .options = {}};
  model.options.ignore_merges = rule.ignore_merges;
  parts.model = std::move(model);
  parts.added = added_tokens(parts.pieces, token_types(file, n));
  if (rule.nfc) parts.normalizer.emplace_back(NormalForm::nfc);
  parts.spelling = PieceSpelling::byte_level;
  parts.pre_tokenizer = make_pre_tokenizer(rule);
  TokenizerFacts facts =
      read_facts(file, fmt::format("gguf:gpt2/{}", spelled), n,
                 {.bos_id = -1, .eos_id = -1, .unk_id = -1, .add_bos = rule.add_bos});
  const std::string own = file.text(key("pre")).value_or(spelled);
  if (find_split_rule(own) != &rule)
    facts.warnings.push_back(fmt::format("--pre-tokenizer {} overrules {}, which is '{}'", spelled,
                                         key("pre"), printable(own)));
  return make_pipeline_tokenizer(std::move(parts), std::move(facts));
}

void require_no_choice(const TokenizerOptions& options, const char* kind) {
  if (!options.pre_tokenizer.empty())
    throw Error(ErrorKind::invalid_argument,
                fmt::format("--pre-tokenizer: a vocabulary of kind {} has none", kind));
}

std::vector<float> read_scores(const GgufFile& file, int vocab_size) {
  const auto* scores = file.numbers(key("scores"));
  if (scores == nullptr || static_cast<int>(scores->size()) != vocab_size)
    throw Error(ErrorKind::corrupt,
                fmt::format("GGUF metadata: {} has {} entries for {} tokens", key("scores"),
                            scores == nullptr ? 0 : scores->size(), vocab_size));
  return {scores->begin(), scores->end()};
}

// Which pieces Unigram may cut and at what cost, as SentencePiece sees their types. What a user
// defined is in the added tokens and cut before.
UnigramPieces unigram_pieces(const std::vector<float>& scores,
                             const std::vector<TokenType>& types) {
  UnigramPieces rules;
  rules.byte_fallback = true;
  float lowest = std::numeric_limits<float>::max();
  for (std::size_t i = 0; i < scores.size(); ++i) {
    rules.scores.push_back(scores[i]);
    rules.is_usable.push_back(types[i] == TokenType::normal);
    if (types[i] == TokenType::normal) lowest = std::min(lowest, scores[i]);
  }
  rules.unknown_score = lowest - 10.0;
  return rules;
}

std::string charsmap_bytes(const GgufFile& file) {
  const auto* values = file.integers(key("precompiled_charsmap"));
  std::string bytes;
  if (values == nullptr) return bytes;
  bytes.reserve(values->size());
  for (const std::int64_t value : *values) bytes += static_cast<char>(value & 0xFF);
  return bytes;
}

std::unique_ptr<Tokenizer> open_sentencepiece(const GgufFile& file,
                                              const TokenizerOptions& options) {
  require_no_choice(options, "'llama' (SentencePiece)");
  constexpr KindDefaults kLlama{.bos_id = 1, .eos_id = 2, .unk_id = 0, .add_bos = true};
  SentencePieceParts parts;
  parts.pieces = required_texts(file, "tokens");
  const int n = static_cast<int>(parts.pieces.size());
  parts.scores = read_scores(file, n);
  parts.types = token_types(file, n);
  check_byte_tokens(parts.pieces, parts.types);
  parts.added = added_tokens(parts.pieces, parts.types);
  parts.unk_id = token_id(file, "unknown_token_id", kLlama.unk_id, n);
  parts.add_space_prefix = file.boolean(key("add_space_prefix")).value_or(true);
  TokenizerFacts facts = read_facts(file, "gguf:llama", n, kLlama);
  return make_sentencepiece_tokenizer(std::move(parts), std::move(facts));
}

// WordPiece, its pieces as converters write them: "▁" in front of those that begin a word.
std::unique_ptr<Tokenizer> open_word_piece(const GgufFile& file, const TokenizerOptions& options) {
  require_no_choice(options, "'bert' (WordPiece)");
  constexpr KindDefaults kBert{.bos_id = 101, .eos_id = -1, .unk_id = 100, .add_bos = true};
  PipelineParts parts;
  parts.pieces = required_texts(file, "tokens");
  const int n = static_cast<int>(parts.pieces.size());
  parts.added = added_tokens(parts.pieces, token_types(file, n));
  // What llama.cpp does, whatever the model was trained with.
  parts.normalizer.emplace_back(BertText{});
  parts.pre_tokenizer = make_bert_pre_tokenizer();
  parts.spelling = PieceSpelling::word_piece;
  WordPieceOptions rules{.first_prefix = std::string(kSpaceMark), .inner_prefix = ""};
  rules.unk_id = token_id(file, "unknown_token_id", kBert.unk_id, n);
  parts.model = std::move(rules);
  TokenizerFacts facts = read_facts(file, "gguf:bert", n, kBert);
  const int cls = token_id(file, "cls_token_id", facts.bos_id, n);
  const int sep = token_id(file, "seperator_token_id", 102, n);  // (sic)
  facts.bos_id = cls;
  facts.prefix.clear();
  if (cls >= 0) facts.prefix = {cls};
  facts.suffix.clear();
  if (sep >= 0) facts.suffix = {sep};
  return make_pipeline_tokenizer(std::move(parts), std::move(facts));
}

// Unigram with SentencePiece's normalizer.
std::unique_ptr<Tokenizer> open_unigram(const GgufFile& file, const TokenizerOptions& options) {
  require_no_choice(options, "'t5' (Unigram)");
  constexpr KindDefaults kT5{.bos_id = -1, .eos_id = 1, .unk_id = 2, .add_bos = false};
  PipelineParts parts;
  parts.pieces = required_texts(file, "tokens");
  const int n = static_cast<int>(parts.pieces.size());
  const std::vector<TokenType> types = token_types(file, n);
  check_byte_tokens(parts.pieces, types);
  UnigramPieces rules = unigram_pieces(read_scores(file, n), types);
  rules.unk_id = token_id(file, "unknown_token_id", kT5.unk_id, n);
  parts.model = std::move(rules);
  parts.added = added_tokens(parts.pieces, types);
  parts.has_byte_tokens = true;
  parts.spelling = PieceSpelling::space_mark;
  parts.normalizer.emplace_back(
      std::make_shared<const SentencePieceNormalizer>(SentencePieceNormalizer{
          Charsmap(charsmap_bytes(file)), file.boolean(key("add_space_prefix")).value_or(true),
          file.boolean(key("remove_extra_whitespaces")).value_or(false)}));
  TokenizerFacts facts = read_facts(file, "gguf:t5", n, kT5);
  if (!file.boolean(key("add_eos_token")) && !facts.special_ids.empty() &&
      facts.special_ids.front() >= 0)
    facts.suffix = {facts.special_ids.front()};
  return make_pipeline_tokenizer(std::move(parts), std::move(facts));
}

}  // namespace

std::unique_ptr<Tokenizer> open_gguf_tokenizer(const GgufFile& file,
                                               const TokenizerOptions& options) {
  const auto model = file.text(key("model"));
  if (!model)
    throw Error(ErrorKind::not_found,
                fmt::format("the GGUF file holds no tokenizer ({} is missing)", key("model")));
  if (*model == "gpt2") return open_bpe(file, options);
  if (*model == "llama") return open_sentencepiece(file, options);
  if (*model == "bert") return open_word_piece(file, options);
  if (*model == "t5") return open_unigram(file, options);
  throw Error(ErrorKind::unsupported,
              fmt::format("GGUF metadata: {} is '{}', expected gpt2, llama, bert or t5; feed token "
                          "ids",
                          key("model"), printable(*model)));
}

}  // namespace sinkscope
