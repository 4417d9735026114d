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

std::unique_ptr<PieceModel> make_model(const Vocabulary& vocabulary, ModelRules rules) {
  if (auto* bpe = std::get_if<BpeRules>(&rules))
    return std::make_unique<BpeModel>(vocabulary, bpe->merges, bpe->options);
  if (auto* unigram = std::get_if<UnigramPieces>(&rules))
    return std::make_unique<UnigramModel>(vocabulary, std::move(*unigram));
  if (auto* words = std::get_if<WordPieceOptions>(&rules))
    return std::make_unique<WordPieceModel>(vocabulary, std::move(*words));
  return std::make_unique<WordLevelModel>(vocabulary, std::get<WordLevelRules>(rules).unk_id);
}

class PipelineTokenizer : public VocabTokenizer {
 public:
  PipelineTokenizer(PipelineParts parts, TokenizerFacts facts)
      : VocabTokenizer(std::move(parts.pieces), std::move(parts.added), std::move(parts.normalizer),
                       std::move(facts)),
        pre_tokenizer_(std::move(parts.pre_tokenizer)),
        spelling_(parts.spelling),
        space_mark_(std::move(parts.space_mark)),
        has_byte_tokens_(parts.has_byte_tokens) {
    if (const auto* words = std::get_if<WordPieceOptions>(&parts.model)) words_ = *words;
    model_ = make_model(vocabulary_, std::move(parts.model));
  }

 protected:
  std::int64_t encode_fragment(const Fragment& fragment, std::vector<int>& ids) const override {
    const Pieces pieces =
        pre_tokenizer_.run(fragment.text, fragment.begins_text ? PreTokenizer::Place::begin
                                                               : PreTokenizer::Place::middle);
    return encode_all(*model_, pieces.text, pieces.spans, ids);
  }

  std::string piece_bytes(int id) const override {
    const std::string& piece = vocabulary_.piece(id);
    const int byte = has_byte_tokens_ ? byte_of_piece(piece) : -1;
    if (byte >= 0) return std::string(1, static_cast<char>(byte));
    switch (spelling_) {
      case PieceSpelling::byte_level:
        return from_byte_level(piece);
      case PieceSpelling::space_mark:
        return replace_all(piece, space_mark_, " ");
      case PieceSpelling::word_piece:
        return word_piece_bytes(piece);
      case PieceSpelling::plain:
        break;
    }
    return piece;
  }

 private:
  std::string word_piece_bytes(std::string_view piece) const {
    if (!words_.first_prefix.empty())
      return piece.starts_with(words_.first_prefix)
                 ? " " + std::string(piece.substr(words_.first_prefix.size()))
                 : std::string(piece);
    return piece.starts_with(words_.inner_prefix)
               ? std::string(piece.substr(words_.inner_prefix.size()))
               : " " + std::string(piece);
  }

  PreTokenizer pre_tokenizer_;
  PieceSpelling spelling_;
  std::string space_mark_;
  bool has_byte_tokens_;
  WordPieceOptions words_;
  std::unique_ptr<PieceModel> model_;
};

class SentencePieceTokenizer : public VocabTokenizer {
 public:
  SentencePieceTokenizer(SentencePieceParts parts, TokenizerFacts facts)
      : VocabTokenizer(std::move(parts.pieces), std::move(parts.added), {}, std::move(facts)),
        types_(parts.types),
        add_space_prefix_(parts.add_space_prefix),
        model_(vocabulary_, std::move(parts.scores), std::move(parts.types), parts.unk_id) {}

 protected:
  std::int64_t encode_fragment(const Fragment& fragment, std::vector<int>& ids) const override {
    std::string marked = replace_all(fragment.text, " ", kSpaceMark);
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
                               TextNormalizer normalizer, TokenizerFacts facts)
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
  if (bos == BosRule::text_alone) return {};
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
  try {
    return encode_text(text, bos);
  } catch (const Error& error) {
    if (file().empty() || error.kind() == ErrorKind::invalid_argument) throw;
    throw in_file(file(), error);
  }
}

Encoding VocabTokenizer::encode_text(std::string_view text, BosRule bos) const {
  Encoding result;
  result.warnings = facts_.warnings;
  result.ids = prefix_for(bos);
  std::int64_t dropped = 0;
  const bool is_alone = bos == BosRule::text_alone;
  using Special = AddedTokens::Special;
  for (const Fragment& fragment :
       added_.split(text, is_alone ? Special::are_text : Special::are_cut_out)) {
    if (fragment.id >= 0)
      result.ids.push_back(fragment.id);
    else
      dropped += encode_fragment(fragment, result.ids);
  }
  if (!is_alone) result.ids.insert(result.ids.end(), facts_.suffix.begin(), facts_.suffix.end());
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

int VocabTokenizer::added_id(std::string_view content) const {
  for (const AddedToken& token : added_.tokens())
    if (token.content == content) return token.id;
  return -1;
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

std::unique_ptr<Tokenizer> make_pipeline_tokenizer(PipelineParts parts, TokenizerFacts facts) {
  return std::make_unique<PipelineTokenizer>(std::move(parts), std::move(facts));
}

std::unique_ptr<Tokenizer> make_sentencepiece_tokenizer(SentencePieceParts parts,
                                                        TokenizerFacts facts) {
  return std::make_unique<SentencePieceTokenizer>(std::move(parts), std::move(facts));
}

}  // namespace sinkscope
