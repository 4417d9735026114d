// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <bitset>
#include <string>
#include <string_view>
#include <vector>

#include "capture/tokenizer/prefix_index.h"
#include "capture/tokenizer/text_normalizer.h"
#include "capture/tokenizer/unicode.h"

namespace sinkscope {

// A token that is cut out of the text before anything else looks at it, as in tokenizer.json.
struct AddedToken {
  int id = -1;
  std::string content;
  bool single_word = false;             // not inside a longer word
  bool lstrip = false, rstrip = false;  // swallows the white space on that side
  bool normalized = false;              // looked for in the normalized text
  bool special = false;
};

// A token found in the text, or (id -1) normalized text between tokens, never empty.
struct Fragment {
  int id = -1;
  std::string text;
  bool begins_text = false;  // nothing is in front of it
};

// Finds added tokens: first those of the raw text, leftmost-longest, then the others in the
// normalized rest. Const members are thread-safe.
class AddedTokens {
 public:
  AddedTokens(std::vector<AddedToken> tokens, TextNormalizer normalizer);
  AddedTokens(const AddedTokens&) = delete;
  AddedTokens& operator=(const AddedTokens&) = delete;

  // Special tokens are text like any other where `Special::are_text`.
  enum class Special { are_cut_out, are_text };
  std::vector<Fragment> split(std::string_view text, Special special = Special::are_cut_out) const;
  const std::vector<AddedToken>& tokens() const { return tokens_; }

 private:
  // What to look for, by content, and the bytes that it begins with, which say where to look.
  struct Index {
    PrefixIndex slots;  // into tokens_
    std::bitset<256> first_bytes;
  };
  static Index index_of(std::vector<PrefixIndex::Entry> entries);
  struct Cut {
    int id;
    Span span;
  };
  std::vector<Cut> cut(std::string_view text, const Index& index, Special special) const;
  int longest_at(std::string_view text, std::int64_t at, const Index& index, Special special,
                 std::int64_t& length) const;

  std::vector<AddedToken> tokens_;
  TextNormalizer normalizer_;
  std::vector<std::string> normalized_contents_;
  Index raw_, normalized_;  // point into the contents
};

}  // namespace sinkscope
