// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "capture/tokenizer/charsmap.h"
#include "capture/tokenizer/regex.h"
#include "capture/tokenizer/unicode.h"

namespace sinkscope {

// Steps of a normalizer, named as in tokenizer.json. Beside them: NFC, NFD, NFKC, NFKD.
struct Lowercase {};
struct StripAccents {};  // removes every mark; wants NFD before it
struct StripSpace {      // White_Space at the ends
  bool left = true, right = true;
};
struct PrependText {  // nothing in front of nothing
  std::string text;
};
struct ReplaceText {
  std::shared_ptr<const Regex> pattern;
  std::string replacement;  // as it is, without references
};
struct BertText {
  bool clean_text = true;            // drop control characters, every White_Space becomes " "
  bool handle_chinese_chars = true;  // spaces around ideographs
  bool strip_accents = true;         // NFD without nonspacing marks
  bool lowercase = true;
};
struct NmtText {};  // SentencePiece's rules for control and space characters
struct PrecompiledText {
  std::shared_ptr<const Charsmap> charsmap;
};

// The last is SentencePiece's whole normalizer, which GGUF files describe by their flags.
using NormalizerStep = std::variant<NormalForm, Lowercase, StripAccents, StripSpace, PrependText,
                                    ReplaceText, BertText, NmtText, PrecompiledText,
                                    std::shared_ptr<const SentencePieceNormalizer>>;

// Normalizations in order. No text becomes more than 64 times as long, and a megabyte: a file whose
// steps multiply without end is refused by Error{unsupported} that names the step.
using TextNormalizer = std::vector<NormalizerStep>;
std::string normalize(std::string_view text, const TextNormalizer& normalizer);

}  // namespace sinkscope
