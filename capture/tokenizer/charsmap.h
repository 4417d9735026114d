// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sinkscope {

// SentencePiece's precompiled_charsmap: texts and what they are normalized to, as a double-array
// trie (u32 size in bytes, then units of u32) and NUL-terminated replacements behind it. All of it
// little-endian. Const members are thread-safe.
class Charsmap {
 public:
  struct Match {
    std::int64_t size = 0;  // bytes of the text that are replaced
    std::string_view replacement;
  };

  // Throws Error{corrupt} where a step through the trie or a replacement could leave `blob`, where
  // keys are longer than 128 bytes (or endless), and where more than 31 begin with one another; so
  // a charsmap that exists is safe to walk, also for SentencePiece's own reader. "" maps nothing.
  explicit Charsmap(std::string_view blob);

  // The key the text begins with at `at`: the longest one (SentencePiece) or the first one found
  // (the package tokenizers, which then replaces a whole grapheme by it).
  std::optional<Match> longest(std::string_view text, std::int64_t at) const;
  std::optional<Match> shortest(std::string_view text, std::int64_t at) const;

 private:
  enum class Which { longest, shortest };
  std::optional<Match> find(std::string_view text, std::int64_t at, Which which) const;

  std::vector<std::uint32_t> units_;
  std::string replacements_;
};

// A charsmap as the package tokenizers applies it: per grapheme cluster (Unicode TR 29).
std::string normalize_graphemes(std::string_view text, const Charsmap& charsmap);

// How SentencePiece normalizes before its model cuts: the charsmap, longest first; leading,
// trailing and repeated spaces removed where asked; a space in front where asked; spaces as "▁".
struct SentencePieceNormalizer {
  Charsmap charsmap;
  bool add_space_prefix = true;
  bool remove_extra_spaces = true;
  std::string run(std::string_view text) const;
};

}  // namespace sinkscope
