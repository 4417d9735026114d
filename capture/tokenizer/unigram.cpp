// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/tokenizer/unigram.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "capture/tokenizer/unicode.h"
#include "core/error.h"

namespace sinkscope {
namespace {

constexpr int kUnknown = -1;

// The best way to reach a byte of the text: from where, by which piece, with what sum.
struct Node {
  std::int64_t from = -1;
  int id = kUnknown;
  double score = 0;
};

void improve(Node& node, std::int64_t from, int id, double score) {
  if (node.from < 0 || score > node.score) node = {from, id, score};
}

// Of equal pieces the last counts, as for the package tokenizers.
std::vector<PrefixIndex::Entry> usable_pieces(const Vocabulary& vocabulary,
                                              const UnigramPieces& pieces) {
  std::vector<PrefixIndex::Entry> entries;
  for (int id = vocabulary.size() - 1; id >= 0; --id)
    if (pieces.is_usable.empty() || pieces.is_usable[static_cast<std::size_t>(id)] != 0)
      entries.push_back({vocabulary.piece(id), id});
  return entries;
}

}  // namespace

UnigramModel::UnigramModel(const Vocabulary& vocabulary, UnigramPieces pieces)
    : pieces_(std::move(pieces)) {
  if (static_cast<int>(pieces_.scores.size()) != vocabulary.size())
    throw Error(ErrorKind::corrupt, fmt::format("Unigram: {} scores for {} tokens",
                                                pieces_.scores.size(), vocabulary.size()));
  for (std::size_t id = 0; id < pieces_.scores.size(); ++id)
    if (!std::isfinite(pieces_.scores[id]))
      throw Error(ErrorKind::corrupt, fmt::format("the score of token {} is not a number", id));
  index_ = PrefixIndex(usable_pieces(vocabulary, pieces_));
  if (pieces_.byte_fallback) byte_ids_ = all_byte_ids(vocabulary);
}

std::int64_t UnigramModel::encode_unknown(std::string_view text, std::vector<int>& ids) const {
  if (has_all_bytes(byte_ids_, text)) {
    for (const char c : text) ids.push_back(byte_ids_[static_cast<unsigned char>(c)]);
    return 0;
  }
  if (pieces_.unk_id >= 0) {
    ids.push_back(pieces_.unk_id);
    return 0;
  }
  std::int64_t dropped = 0;
  for (std::int64_t at = 0; at < static_cast<std::int64_t>(text.size()); ++dropped)
    at += utf8_at(text, at).size;
  return dropped;
}

std::int64_t UnigramModel::encode(std::string_view piece, std::vector<int>& ids) const {
  const auto size = static_cast<std::int64_t>(piece.size());
  std::vector<Node> nodes(piece.size() + 1);  // by the byte they end at
  for (std::int64_t at = 0; at < size;) {
    const double reached = nodes[static_cast<std::size_t>(at)].score;
    const std::int64_t character = utf8_at(piece, at).size;
    bool is_known = false;
    index_.prefixes_of(slice(piece, {at, size}), [&](std::int64_t length, int id) {
      improve(nodes[static_cast<std::size_t>(at + length)], at, id,
              reached + pieces_.scores[static_cast<std::size_t>(id)]);
      is_known |= length == character;
    });
    if (!is_known)
      improve(nodes[static_cast<std::size_t>(at + character)], at, kUnknown,
              reached + pieces_.unknown_score);
    at += character;
  }

  struct Cut {
    Span span;
    int id;
  };
  std::vector<Cut> cuts;  // from the end
  for (std::int64_t end = size; end > 0;) {
    const Node& node = nodes[static_cast<std::size_t>(end)];
    const bool is_unknown = node.id == kUnknown || node.id == pieces_.unk_id;
    if (is_unknown && pieces_.fuse_unk && !cuts.empty() && cuts.back().id == kUnknown)
      cuts.back().span.begin = node.from;
    else
      cuts.push_back({{node.from, end}, is_unknown ? kUnknown : node.id});
    end = node.from;
  }
  std::int64_t dropped = 0;
  for (auto cut = cuts.rbegin(); cut != cuts.rend(); ++cut) {
    if (cut->id == kUnknown)
      dropped += encode_unknown(slice(piece, cut->span), ids);
    else
      ids.push_back(cut->id);
  }
  return dropped;
}

}  // namespace sinkscope
