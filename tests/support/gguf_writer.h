// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

namespace sinkscope {
class ModelFiles;
}

namespace sinkscope::test {

// Writes a model of the Llama family as a GGUF v3 file of F32 tensors, as llama.cpp's converter
// would: architecture llama (for llama and mistral), qwen2 or qwen3; for llama the q and k rows and
// biases in pairs, llama3 rope scaling as the tensor rope_freqs.weight. No tokenizer but the ids of
// BOS and EOS. Returns `path`. Throws std::invalid_argument for rotary positions that GGUF cannot
// say (dynamic, yarn with mscale).
std::string write_gguf(const ModelFiles& model, const std::string& path);

}  // namespace sinkscope::test
