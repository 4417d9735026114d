// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/tokenizer/word_piece.h"

#include <algorithm>

#include "capture/tokenizer/unicode.h"

namespace sinkscope {
namespace {

std::int64_t n_characters(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

PrefixIndex index_of(const Vocabulary& vocabulary, std::string_view prefix) {
  std::vector<PrefixIndex::Entry> entries;
  for (int id = 0; id < vocabulary.size(); ++id) {
    const std::string_view piece = vocabulary.piece(id);
    if (piece.starts_with(prefix)) entries.push_back({piece.substr(prefix.size()), id});
  }
  return PrefixIndex(std::move(entries));
}

// Says that a word has no tokens: one unknown token, or its characters are counted as dropped.
std::int64_t unknown(std::string_view word, int unk_id, std::vector<int>& ids) {
  if (unk_id < 0) return n_characters(word);
  ids.push_back(unk_id);
  return 0;
}

}  // namespace

WordPieceModel::WordPieceModel(const Vocabulary& vocabulary, WordPieceOptions options)
    : options_(std::move(options)),
      first_(index_of(vocabulary, options_.first_prefix)),
      inner_(index_of(vocabulary, options_.inner_prefix)) {}

std::int64_t WordPieceModel::encode(std::string_view word, std::vector<int>& ids) const {
  const std::size_t before = ids.size();
  if (n_characters(word) > options_.max_characters) return unknown(word, options_.unk_id, ids);
  for (std::size_t at = 0; at < word.size();) {
    std::int64_t length = 0;
    int id = -1;
    (at == 0 ? first_ : inner_).prefixes_of(word.substr(at), [&](std::int64_t n, int found) {
      length = n;
      id = found;
    });
    if (id < 0) {
      ids.resize(before);
      return unknown(word, options_.unk_id, ids);
    }
    ids.push_back(id);
    at += static_cast<std::size_t>(length);
  }
  return 0;
}

std::int64_t WordLevelModel::encode(std::string_view word, std::vector<int>& ids) const {
  const int id = vocabulary_.find(word);
  if (id < 0) return unknown(word, unk_id_, ids);
  ids.push_back(id);
  return 0;
}

}  // namespace sinkscope
