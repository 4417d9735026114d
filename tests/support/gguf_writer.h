// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

#include "tests/support/gguf_convert.h"

namespace sinkscope::test {

// Writes a model as a GGUF v3 file of F32 tensors, as llama.cpp's converter would: q and k rows and
// biases in pairs where its architecture has them so (llama, granite, smollm3, mistral3), llama3
// rope scaling as the tensor rope_freqs.weight, what else it changes as in gguf_convert.h. No
// tokenizer but the ids of BOS and EOS. Returns `path`. Throws std::invalid_argument for rotary
// positions that GGUF cannot say (dynamic, yarn with mscale).
std::string write_gguf(const ModelFiles& model, const std::string& path,
                       GgufForm form = GgufForm::current);

}  // namespace sinkscope::test
