// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <string>

#include "capture/checkpoint/checkpoint.h"
#include "capture/tokenizer/tokenizer.h"

namespace sinkscope {

// The tokenizer of a model without the model: a folder's tokenizer.json, a tokenizer.json itself, a
// GGUF file that may hold a vocabulary and no tensors, or whatever open_model understands. With an
// arch_file the model itself is opened by it, so that the file is checked.
// Throws Error: not_found, corrupt, unsupported.
std::unique_ptr<Tokenizer> open_tokenizer_at(const std::string& path,
                                             const TokenizerOptions& options,
                                             const OpenOptions& opening = {});

}  // namespace sinkscope
