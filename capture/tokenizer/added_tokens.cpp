// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/tokenizer/added_tokens.h"

#include <algorithm>

namespace sinkscope {

AddedTokens::Index AddedTokens::index_of(std::vector<PrefixIndex::Entry> entries) {
  Index index;
  for (const PrefixIndex::Entry& entry : entries)
    if (!entry.text.empty()) index.first_bytes.set(static_cast<unsigned char>(entry.text.front()));
  index.slots = PrefixIndex(std::move(entries));
  return index;
}

AddedTokens::AddedTokens(std::vector<AddedToken> tokens, TextNormalizer normalizer)
    : tokens_(std::move(tokens)), normalizer_(std::move(normalizer)) {
  normalized_contents_.reserve(tokens_.size());  // so that none of them moves
  std::vector<PrefixIndex::Entry> raw, normalized;
  for (int slot = 0; slot < static_cast<int>(tokens_.size()); ++slot) {
    const AddedToken& token = tokens_[static_cast<std::size_t>(slot)];
    if (token.normalized) {
      normalized_contents_.push_back(normalize(token.content, normalizer_));
      normalized.push_back({normalized_contents_.back(), slot});
    } else {
      raw.push_back({token.content, slot});
    }
  }
  raw_ = index_of(std::move(raw));
  normalized_ = index_of(std::move(normalized));
}

int AddedTokens::longest_at(std::string_view text, std::int64_t at, const Index& index,
                            Special special, std::int64_t& length) const {
  const std::string_view rest = text.substr(static_cast<std::size_t>(at));
  if (!index.first_bytes[static_cast<unsigned char>(rest.front())]) return -1;
  int slot = -1;
  index.slots.prefixes_of(rest, [&](std::int64_t n, int found) {
    if (special == Special::are_text && tokens_[static_cast<std::size_t>(found)].special) return;
    length = n;
    slot = found;
  });
  return slot;
}

std::vector<AddedTokens::Cut> AddedTokens::cut(std::string_view text, const Index& index,
                                               Special special) const {
  std::vector<Cut> cuts;
  const auto size = static_cast<std::int64_t>(text.size());
  std::int64_t done = 0;
  for (std::int64_t at = 0; at < size;) {
    std::int64_t length = 0;
    const int slot = longest_at(text, at, index, special, length);
    if (slot < 0) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[static_cast<std::size_t>(slot)];
    Span found{at, at + length};
    at = found.end;  // also past a token that is refused: matches never overlap
    const std::string_view before = slice(text, {0, found.begin}), after = slice(text, {at, size});
    if (token.single_word && (ends_with_word(before) || starts_with_word(after))) continue;
    if (token.lstrip) found.begin = std::max(done, found.begin - trailing_space(before));
    if (token.rstrip) found.end += leading_space(after);
    if (done < found.begin) cuts.push_back({-1, {done, found.begin}});
    cuts.push_back({token.id, found});
    done = found.end;
  }
  if (done < size) cuts.push_back({-1, {done, size}});
  return cuts;
}

std::vector<Fragment> AddedTokens::split(std::string_view text, Special special) const {
  std::vector<Fragment> fragments;
  for (const Cut& outer : cut(text, raw_, special)) {
    if (outer.id >= 0) {
      fragments.push_back({outer.id, {}});
      continue;
    }
    const std::string clean = normalize(slice(text, outer.span), normalizer_);
    for (const Cut& inner : cut(clean, normalized_, special)) {
      if (inner.id >= 0)
        fragments.push_back({inner.id, {}});
      else
        fragments.push_back({-1, std::string(slice(clean, inner.span)),
                             outer.span.begin == 0 && inner.span.begin == 0});
    }
  }
  return fragments;
}

}  // namespace sinkscope
