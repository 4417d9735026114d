// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/tokenizer/sentencepiece_bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "capture/tokenizer/merge.h"
#include "core/error.h"

namespace sinkscope {
namespace {

// Where words begin: at a "▁" that follows another character. From byte `from` on; -1 = nowhere.
std::int64_t next_word(std::string_view text, std::int64_t from) {
  while (true) {
    const std::size_t at = text.find(kSpaceMark, static_cast<std::size_t>(from));
    if (at == std::string_view::npos) return -1;
    if (at > 0 && !text.substr(0, at).ends_with(kSpaceMark)) return static_cast<std::int64_t>(at);
    from = static_cast<std::int64_t>(at + kSpaceMark.size());
  }
}

}  // namespace

SentencePieceBpe::SentencePieceBpe(const Vocabulary& vocabulary, std::vector<float> scores,
                                   std::vector<TokenType> types, int unk_id)
    : vocabulary_(vocabulary),
      scores_(std::move(scores)),
      types_(std::move(types)),
      unk_id_(unk_id),
      byte_ids_(256, -1) {
  for (int id = 0; id < vocabulary.size(); ++id) {
    const auto i = static_cast<std::size_t>(id);
    if (std::isnan(scores_[i]))
      throw Error(ErrorKind::corrupt, fmt::format("the score of token {} is not a number", id));
    const int byte = byte_of_piece(vocabulary.piece(id));
    has_phrases_ |= mergeable(vocabulary.piece(id)) >= 0 && next_word(vocabulary.piece(id), 0) >= 0;
    if (types_[i] == TokenType::byte && byte >= 0) byte_ids_[static_cast<std::size_t>(byte)] = id;
  }
}

int SentencePieceBpe::mergeable(std::string_view piece) const {
  const int id = vocabulary_.find(piece);
  if (id < 0) return -1;
  const TokenType type = types_[static_cast<std::size_t>(id)];
  return type == TokenType::normal || type == TokenType::user_defined || type == TokenType::unused
             ? id
             : -1;
}

std::vector<Span> SentencePieceBpe::independent_parts(std::string_view text) const {
  std::vector<Span> parts;
  const auto size = static_cast<std::int64_t>(text.size());
  for (std::int64_t begin = 0; begin < size;) {
    const std::int64_t next = has_phrases_ ? -1 : next_word(text, begin + 1);
    parts.push_back({begin, next < 0 ? size : next});
    begin = parts.back().end;
  }
  return parts;
}

bool SentencePieceBpe::encode_unknown(std::string_view character, std::vector<int>& ids) const {
  const std::size_t before = ids.size();
  for (const char c : character) ids.push_back(byte_ids_[static_cast<unsigned char>(c)]);
  if (std::find(ids.begin() + static_cast<std::ptrdiff_t>(before), ids.end(), -1) == ids.end())
    return true;
  ids.resize(before);
  if (unk_id_ < 0) return false;
  ids.push_back(unk_id_);
  return true;
}

std::int64_t SentencePieceBpe::encode(std::string_view text, std::vector<int>& ids) const {
  std::vector<Symbol> symbols;
  symbols.reserve(text.size());
  for (std::int64_t at = 0; at < static_cast<std::int64_t>(text.size());) {
    const Span span{at, at + utf8_at(text, at).size};
    symbols.push_back({span, mergeable(slice(text, span))});
    at = span.end;
  }
  link(symbols);
  std::unordered_map<int, std::pair<std::int64_t, std::int64_t>> parts_of_unused;  // id -> sizes
  merge_symbols(symbols, [&](const Symbol& left, const Symbol& right) -> MergedPair {
    const int id = mergeable(slice(text, {left.span.begin, right.span.end}));
    if (id < 0) return {};
    if (types_[static_cast<std::size_t>(id)] == TokenType::unused)
      parts_of_unused[id] = {left.span.size(), right.span.size()};
    return {-static_cast<double>(scores_[static_cast<std::size_t>(id)]), id};
  });

  std::int64_t dropped = 0;
  std::vector<Span> rest;  // a stack: unused pieces fall apart, the left part comes first
  for (const Symbol& symbol : symbols) {
    if (!symbol.is_alive) continue;
    rest.assign(1, symbol.span);
    while (!rest.empty()) {
      const Span span = rest.back();
      rest.pop_back();
      const std::string_view piece = slice(text, span);
      const int id = mergeable(piece);
      const bool is_unused = id >= 0 && types_[static_cast<std::size_t>(id)] == TokenType::unused;
      const auto parts = is_unused ? parts_of_unused.find(id) : parts_of_unused.end();
      if (parts != parts_of_unused.end()) {
        rest.push_back({span.begin + parts->second.first, span.end});
        rest.push_back({span.begin, span.begin + parts->second.first});
        continue;
      }
      if (id >= 0)
        ids.push_back(id);
      else if (!encode_unknown(piece, ids))
        ++dropped;
    }
  }
  return dropped;
}

}  // namespace sinkscope
