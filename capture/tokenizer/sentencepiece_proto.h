// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <string_view>

namespace sinkscope {

// What a serialized SentencePiece model says about itself.
struct SentencePieceFacts {
  enum class Kind { unigram = 1, bpe = 2, word = 3, character = 4 };
  Kind kind = Kind::unigram;
  int n_pieces = 0;
};

// Looks a model over before the library gets it, which trusts more than a stranger's file deserves:
// every field inside its message, every score a number, every charsmap safe to walk, at most 64
// user-defined pieces that begin with one another. `where` is for messages. Throws Error{corrupt}.
SentencePieceFacts check_sentencepiece_model(std::string_view bytes, const std::string& where);

}  // namespace sinkscope
