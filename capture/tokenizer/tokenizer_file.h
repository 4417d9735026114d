// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <string>

#include "capture/tokenizer/tokenizer.h"

namespace sinkscope {

// The tokenizer of one file: a GGUF file, else tokenizer.json or a SentencePiece model (*.model).
// Errors name the file; Error{invalid_argument} for a pre-tokenizer where the file is no GGUF file.
std::unique_ptr<Tokenizer> open_tokenizer_file(const std::string& path,
                                               const TokenizerOptions& options = {});

}  // namespace sinkscope
