// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "tests/tokenizer/fake_gguf.h"

namespace sinkscope::test {

// A small SentencePiece model trained by the library on the license text of the project, with
// byte tokens and a user-defined piece "<mask>". kind: "unigram" or "bpe". Serialized.
const std::string& trained_sentencepiece(const std::string& kind);

// The last bytes-field of that number in a protobuf message; "" when there is none.
std::string proto_bytes(std::string_view message, unsigned number);

// The model as converters write it to GGUF: tokenizer.ggml.model "t5" (Unigram) or "llama" (BPE).
FakeGguf gguf_of(const std::string& serialized, const std::string& ggml_model);

// What the library itself says.
std::vector<int> library_ids(const std::string& serialized, const std::string& text);

}  // namespace sinkscope::test
