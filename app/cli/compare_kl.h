// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "app/cli/capture_flags.h"
#include "app/cli/console.h"
#include "app/cli/prompts.h"

namespace sinkscope {

// What `compare --kl MODEL_A MODEL_B` does: runs both models on the same tokens, cut by A's
// tokenizer, and prints KL(A ‖ B) and the losses. Returns the exit code. Throws
// Error{invalid_argument} unless both have one vocabulary (as many logits, and the same token
// behind every id that both tokenizers know), and what opening and running a model throws.
enum class KlFormat { text, json, csv };
int compare_kl(const std::vector<std::string>& models, const PromptFlags& prompt,
               const RunFlags& run, KlFormat format, Console& console);

}  // namespace sinkscope
