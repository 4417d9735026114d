// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/tokenizer/bpe.h"

#include <fmt/format.h>

#include "capture/checkpoint/printable.h"
#include "core/error.h"

namespace sinkscope {

BpeModel::BpeModel(const Vocabulary& vocabulary, const std::vector<Merge>& merges,
                   BpeOptions options)
    : vocabulary_(vocabulary), options_(options) {
  merges_.reserve(merges.size());
  std::string joined;
  int rank = 0;
  for (const auto& [left, right] : merges) {
    joined.assign(left).append(right);
    const int left_id = vocabulary.find(left), right_id = vocabulary.find(right);
    const int joined_id = vocabulary.find(joined);
    if (left_id < 0 || right_id < 0 || joined_id < 0)
      throw Error(ErrorKind::corrupt,
                  fmt::format("tokenizer merge {} '{} {}': '{}' is not in the vocabulary", rank,
                              printable(left), printable(right),
                              printable(left_id < 0    ? left
                                        : right_id < 0 ? right
                                                       : joined)));
    merges_.insert_or_assign(key(left_id, right_id), Ranked{rank++, joined_id});
  }
  if (options.byte_fallback) byte_ids_ = all_byte_ids(vocabulary);
}

std::vector<Symbol> BpeModel::characters(std::string_view piece, std::int64_t& dropped) const {
  std::vector<Symbol> symbols;
  symbols.reserve(piece.size());
  bool last_is_unknown = false;
  for (std::int64_t at = 0; at < static_cast<std::int64_t>(piece.size());) {
    const Span span{at, at + utf8_at(piece, at).size};
    const std::string_view text = slice(piece, span);
    at = span.end;
    const int id = vocabulary_.find(text);
    const bool is_unknown = id < 0 && !has_all_bytes(byte_ids_, text);
    if (id >= 0) {
      symbols.push_back({span, id});
    } else if (!is_unknown) {
      for (std::int64_t i = 0; i < span.size(); ++i) {
        const auto byte = static_cast<unsigned char>(text[static_cast<std::size_t>(i)]);
        symbols.push_back({{span.begin + i, span.begin + i + 1}, byte_ids_[byte]});
      }
    } else if (options_.unk_id < 0) {
      ++dropped;
    } else if (options_.fuse_unk && last_is_unknown) {
      symbols.back().span.end = span.end;
    } else {
      symbols.push_back({span, options_.unk_id});
    }
    last_is_unknown = is_unknown;
  }
  return symbols;
}

std::int64_t BpeModel::encode(std::string_view piece, std::vector<int>& ids) const {
  if (options_.ignore_merges) {
    const int id = vocabulary_.find(piece);
    if (id >= 0) {
      ids.push_back(id);
      return 0;
    }
  }
  std::int64_t dropped = 0;
  std::vector<Symbol> symbols = characters(piece, dropped);
  link(symbols);
  merge_symbols(symbols, [this](const Symbol& left, const Symbol& right) -> MergedPair {
    const auto it = merges_.find(key(left.id, right.id));
    if (it == merges_.end()) return {};
    return {static_cast<double>(it->second.rank), it->second.id};
  });
  for (const Symbol& symbol : symbols)
    if (symbol.is_alive) ids.push_back(symbol.id);
  return dropped;
}

}  // namespace sinkscope
