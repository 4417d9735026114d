// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/tokenizer/vocab_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "capture/checkpoint/printable.h"
#include "capture/tokenizer/byte_alphabet.h"
#include "core/error.h"

namespace sinkscope {
namespace {

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string result;
  for (std::size_t at = 0;;) {
    const std::size_t found = text.find(from, at);
    result += text.substr(at, found - at);
    if (found == std::string_view::npos) return result;
    result += to;
    at = found + from.size();
  }
}

// Appends the ids of every piece, each distinct one merged once. Returns the dropped characters.
template <class Model>
std::int64_t encode_all(const Model& model, std::string_view text, const std::vector<Span>& pieces,
                        std::vector<int>& ids) {
  std::int64_t dropped = 0;
  std::unordered_map<std::string_view, Span> seen;  // piece -> where its ids are among `ids`
  for (const Span& span : pieces) {
    const std::string_view piece = slice(text, span);
    if (const auto it = seen.find(piece); it != seen.end()) {
      for (std::int64_t i = it->second.begin; i < it->second.end; ++i)
        ids.push_back(ids[static_cast<std::size_t>(i)]);
      continue;
    }
    const auto begin = static_cast<std::int64_t>(ids.size());
    const std::int64_t lost = model.encode(piece, ids);
    dropped += lost;
    if (lost == 0) seen.emplace(piece, Span{begin, static_cast<std::int64_t>(ids.size())});
  }
  return dropped;
}

class BpeTokenizer : public VocabTokenizer {
 public:
  BpeTokenizer(BpeParts parts, TokenizerFacts facts)
      : VocabTokenizer(std::move(parts.pieces), std::move(parts.added), std::move(parts.normalizer),
                       std::move(facts)),
        pre_tokenizer_(std::move(parts.pre_tokenizer)),
        is_byte_level_(pre_tokenizer_.is_byte_level()),
        has_byte_tokens_(parts.options.byte_fallback),
        model_(vocabulary_, parts.merges, parts.options) {}

 protected:
  std::int64_t encode_fragment(std::string_view text, std::vector<int>& ids) const override {
    const Pieces pieces = pre_tokenizer_.run(text);
    return encode_all(model_, pieces.text, pieces.spans, ids);
  }

  std::string piece_bytes(int id) const override {
    const std::string& piece = vocabulary_.piece(id);
    if (is_byte_level_) return from_byte_level(piece);
    const int byte = has_byte_tokens_ ? byte_of_piece(piece) : -1;
    return byte >= 0 ? std::string(1, static_cast<char>(byte)) : piece;
  }

 private:
  PreTokenizer pre_tokenizer_;
  bool is_byte_level_, has_byte_tokens_;
  BpeModel model_;
};

class SentencePieceTokenizer : public VocabTokenizer {
 public:
  SentencePieceTokenizer(SentencePieceParts parts, TokenizerFacts facts)
      : VocabTokenizer(std::move(parts.pieces), std::move(parts.added), {}, std::move(facts)),
        types_(parts.types),
        add_space_prefix_(parts.add_space_prefix),
        model_(vocabulary_, std::move(parts.scores), std::move(parts.types), parts.unk_id) {}

 protected:
  std::int64_t encode_fragment(std::string_view text, std::vector<int>& ids) const override {
    std::string marked = replace_all(text, " ", kSpaceMark);
    if (add_space_prefix_) marked.insert(0, kSpaceMark);
    return encode_all(model_, marked, model_.independent_parts(marked), ids);
  }

  std::string piece_bytes(int id) const override {
    const std::string& piece = vocabulary_.piece(id);
    if (types_[static_cast<std::size_t>(id)] == TokenType::byte) {
      const int byte = byte_of_piece(piece);
      if (byte >= 0) return std::string(1, static_cast<char>(byte));
    }
    return replace_all(piece, kSpaceMark, " ");
  }

 private:
  std::vector<TokenType> types_;
  bool add_space_prefix_;
  SentencePieceBpe model_;
};

}  // namespace

VocabTokenizer::VocabTokenizer(std::vector<std::string> pieces, std::vector<AddedToken> added,
                               Normalizer normalizer, TokenizerFacts facts)
    : vocabulary_(std::move(pieces)),
      added_(std::move(added), std::move(normalizer)),
      facts_(std::move(facts)),
      vocab_size_(vocabulary_.size()) {
  for (const AddedToken& token : added_.tokens()) {
    added_content_.emplace(token.id, token.content);
    if (token.special) special_.insert(token.id);
    vocab_size_ = std::max(vocab_size_, token.id + 1);
  }
  special_.insert(facts_.special_ids.begin(), facts_.special_ids.end());
  special_.insert(facts_.prefix.begin(), facts_.prefix.end());
  special_.insert(facts_.suffix.begin(), facts_.suffix.end());
  special_.insert(facts_.bos_id);
  special_.erase(-1);
}

std::vector<int> VocabTokenizer::prefix_for(BosRule bos) const {
  std::vector<int> prefix = facts_.prefix;
  const bool has_bos = std::find(prefix.begin(), prefix.end(), facts_.bos_id) != prefix.end();
  if (bos == BosRule::never) std::erase(prefix, facts_.bos_id);
  if (bos == BosRule::always && facts_.bos_id < 0)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("--bos always: the tokenizer {} has no BOS token", facts_.name));
  if (bos == BosRule::always && !has_bos) prefix.insert(prefix.begin(), facts_.bos_id);
  return prefix;
}

Encoding VocabTokenizer::encode(std::string_view text, BosRule bos) const {
  require_utf8(text);
  Encoding result;
  result.warnings = facts_.warnings;
  result.ids = prefix_for(bos);
  std::int64_t dropped = 0;
  for (const Fragment& fragment : added_.split(text)) {
    if (fragment.id >= 0)
      result.ids.push_back(fragment.id);
    else
      dropped += encode_fragment(fragment.text, result.ids);
  }
  result.ids.insert(result.ids.end(), facts_.suffix.begin(), facts_.suffix.end());
  if (facts_.bos_id >= 0)
    for (int i = 0; i < static_cast<int>(result.ids.size()); ++i)
      if (result.ids[static_cast<std::size_t>(i)] == facts_.bos_id)
        result.bos_positions.push_back(i);

  if (result.bos_positions.size() >= 2 && result.bos_positions[0] == 0 &&
      result.bos_positions[1] == 1)
    result.warnings.push_back(fmt::format(
        "2 BOS: tokens 0 and 1 are both {} (id {}); --bos never adds none to those of the text",
        printable(raw_piece(facts_.bos_id)), facts_.bos_id));
  if (dropped > 0)
    result.warnings.push_back(fmt::format(
        "{} bytes or characters have no token in this vocabulary and were dropped", dropped));
  return result;
}

std::string VocabTokenizer::raw_piece(int id) const {
  const auto it = added_content_.find(id);
  if (it != added_content_.end()) return it->second;
  return vocabulary_.contains_id(id) ? vocabulary_.piece(id) : std::string();
}

std::string VocabTokenizer::bytes(int id) const {
  const auto it = added_content_.find(id);
  if (it != added_content_.end()) return it->second;
  return vocabulary_.contains_id(id) ? piece_bytes(id) : std::string();
}

std::unique_ptr<Tokenizer> make_bpe_tokenizer(BpeParts parts, TokenizerFacts facts) {
  return std::make_unique<BpeTokenizer>(std::move(parts), std::move(facts));
}

std::unique_ptr<Tokenizer> make_sentencepiece_tokenizer(SentencePieceParts parts,
                                                        TokenizerFacts facts) {
  return std::make_unique<SentencePieceTokenizer>(std::move(parts), std::move(facts));
}

}  // namespace sinkscope
