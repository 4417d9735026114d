// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/tokenizer/charsmap.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <cstring>

#include "capture/tokenizer/sentencepiece_bpe.h"
#include "capture/tokenizer/unicode.h"
#include "core/error.h"

namespace sinkscope {
namespace {

// A unit of the trie (darts-clone): the label it was reached by, where its children are, and
// whether one of them is a value.
std::uint32_t offset_of(std::uint32_t unit) { return (unit >> 10) << ((unit & (1u << 9)) >> 6); }
std::uint32_t label_of(std::uint32_t unit) { return unit & ((1u << 31) | 0xFFu); }
bool has_value(std::uint32_t unit) { return ((unit >> 8) & 1u) != 0; }
bool is_value(std::uint32_t unit) { return (unit >> 31) != 0; }
std::uint32_t value_of(std::uint32_t unit) { return unit & 0x7FFFFFFFu; }

[[noreturn]] void refuse(const std::string& what) {
  throw Error(ErrorKind::corrupt, fmt::format("precompiled charsmap: {}", what));
}

// SentencePiece's own reader has room for 32 keys that a text begins with, and its builder makes
// fewer; no rule of Unicode is longer than a few characters.
constexpr int kMostNested = 31;
constexpr int kLongestKey = 128;

// What lies below a node: how many keys begin with one another at most, and how long the longest
// is. bytes -1: not looked at yet.
struct Below {
  int keys = 0;
  int bytes = -1;
};

// Of the node whose child of label c is the unit base ^ c. A cycle is a key without an end. Labels
// of 0 count, which only SentencePiece's reader follows.
Below look_below(const std::vector<std::uint32_t>& units, std::uint32_t base, int depth,
                 std::vector<Below>& known) {
  if (known[base].bytes >= 0) return known[base];
  Below below{0, 0};
  for (std::uint32_t label = 0; label < 256; ++label) {
    const std::uint32_t at = base ^ label, unit = units[at];
    if (label_of(unit) != label) continue;
    if (depth == kLongestKey) refuse(fmt::format("a key of more than {} bytes", kLongestKey));
    const Below child = look_below(units, at ^ offset_of(unit), depth + 1, known);
    below.keys = std::max(below.keys, child.keys + (has_value(unit) ? 1 : 0));
    below.bytes = std::max(below.bytes, child.bytes + 1);
  }
  if (below.bytes > kLongestKey) refuse(fmt::format("a key of more than {} bytes", kLongestKey));
  known[base] = below;
  return below;
}

// Clusters longer than this are looked up character by character, as the package does.
constexpr std::int64_t kLongestCluster = 5;
// A text must not grow without end. The longest in use stands for U+FDFA, in 33 bytes.
constexpr std::size_t kLongestReplacement = 256;

}  // namespace

Charsmap::Charsmap(std::string_view blob) {
  if (blob.empty()) return;
  std::uint32_t trie_bytes = 0;
  if (blob.size() < sizeof trie_bytes) refuse(fmt::format("{} bytes, no header", blob.size()));
  std::memcpy(&trie_bytes, blob.data(), sizeof trie_bytes);
  blob.remove_prefix(sizeof trie_bytes);
  if (trie_bytes % 4 != 0 || trie_bytes >= blob.size())
    refuse(fmt::format("a trie of {} bytes, {} are there", trie_bytes, blob.size()));
  if (trie_bytes == 0) refuse("an empty trie");
  units_.resize(trie_bytes / 4);
  std::memcpy(units_.data(), blob.data(), trie_bytes);
  replacements_ = blob.substr(trie_bytes);
  if (replacements_.back() != '\0') refuse("the last replacement has no end");
  for (std::size_t begin = 0; begin < replacements_.size();) {
    const std::size_t end = replacements_.find('\0', begin);
    if (end - begin > kLongestReplacement)
      refuse(fmt::format("a replacement of {} bytes, at most {} are allowed", end - begin,
                         kLongestReplacement));
    begin = end + 1;
  }
  if (is_value(units_[0])) refuse("the root of its trie is a value");
  for (std::size_t i = 0; i < units_.size(); ++i) {
    const std::uint32_t unit = units_[i];
    if (is_value(unit)) {
      if (value_of(unit) >= replacements_.size())
        refuse(fmt::format("a replacement at byte {} of {}", value_of(unit), replacements_.size()));
      continue;
    }
    // The children of a unit lie in one block of 256 (its labels are bytes).
    const std::uint64_t block = (i ^ offset_of(unit)) | 0xFFu;
    if (block >= units_.size())
      refuse(fmt::format("a step from unit {} to unit {} of {}", i, block, units_.size()));
    if (has_value(unit) && !is_value(units_[i ^ offset_of(unit)]))
      refuse(fmt::format("a key that ends at unit {} without a value", i));
  }
  std::vector<Below> known(units_.size());
  if (look_below(units_, offset_of(units_[0]), 0, known).keys > kMostNested)
    refuse(fmt::format("more than {} keys that begin with one another", kMostNested));
}

std::optional<Charsmap::Match> Charsmap::find(std::string_view text, std::int64_t at,
                                              Which which) const {
  if (units_.empty()) return std::nullopt;
  std::optional<Match> found;
  std::uint64_t node = offset_of(units_[0]);
  for (auto i = static_cast<std::size_t>(at); i < text.size() && text[i] != '\0'; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    node ^= byte;
    const std::uint32_t unit = units_[node];
    if (label_of(unit) != byte) break;
    node ^= offset_of(unit);
    if (!has_value(unit)) continue;
    found = Match{static_cast<std::int64_t>(i) + 1 - at,
                  std::string_view(replacements_.c_str() + value_of(units_[node]))};
    if (which == Which::shortest) break;
  }
  return found;
}

std::optional<Charsmap::Match> Charsmap::longest(std::string_view text, std::int64_t at) const {
  return find(text, at, Which::longest);
}

std::optional<Charsmap::Match> Charsmap::shortest(std::string_view text, std::int64_t at) const {
  return find(text, at, Which::shortest);
}

std::string normalize_graphemes(std::string_view text, const Charsmap& charsmap) {
  std::string result;
  // The package looks at the text it was given only: a key must not reach beyond the stretch.
  const auto append = [&](std::string_view stretch) {
    const auto match = charsmap.shortest(stretch, 0);
    if (match) result += match->replacement;
    return match.has_value();
  };
  const auto size = static_cast<std::int64_t>(text.size());
  for (std::int64_t begin = 0; begin < size;) {
    Utf8Char c = utf8_at(text, begin);
    std::int64_t end = begin + c.size;
    utf8proc_int32_t state = 0;
    while (end < size) {
      const Utf8Char next = utf8_at(text, end);
      if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(c.code),
                                           static_cast<utf8proc_int32_t>(next.code), &state))
        break;
      c = next;
      end += next.size;
    }
    if (end - begin > kLongestCluster || !append(slice(text, {begin, end})))
      for (std::int64_t at = begin; at < end;) {
        const std::string_view part = slice(text, {at, at + utf8_at(text, at).size});
        if (!append(part)) result += part;
        at += static_cast<std::int64_t>(part.size());
      }
    begin = end;
  }
  return result;
}

std::string SentencePieceNormalizer::run(std::string_view text) const {
  std::string result;
  bool after_space = remove_extra_spaces;
  bool is_begin = true;
  for (std::int64_t at = 0; at < static_cast<std::int64_t>(text.size());) {
    const auto match = charsmap.longest(text, at);
    const std::int64_t size = match ? match->size : utf8_at(text, at).size;
    std::string_view part = match ? match->replacement : slice(text, {at, at + size});
    at += size;
    // In front of everything, only what is exactly one space is skipped; later any leading one.
    if (is_begin && remove_extra_spaces && part == " ") continue;
    if (is_begin && add_space_prefix) result += kSpaceMark;
    is_begin = false;
    while (after_space && part.starts_with(' ')) part.remove_prefix(1);
    if (part.empty()) continue;
    for (const char c : part) {
      if (c == ' ')
        result += kSpaceMark;
      else
        result += c;
    }
    after_space = remove_extra_spaces && part.ends_with(' ');
  }
  if (remove_extra_spaces)
    while (result.ends_with(kSpaceMark)) result.resize(result.size() - kSpaceMark.size());
  return result;
}

}  // namespace sinkscope
