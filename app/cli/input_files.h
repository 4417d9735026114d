// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/cli/prompts.h"

namespace sinkscope {

// The files that are read for a word of the command line: those of a model (folder, hub name, one
// of its files), a capture (also RUN.h5::run1, and RUN.h5.part where that is what there is), any
// other file.
std::vector<std::string> files_behind(const std::string& word);

// What a prompt is read from.
std::vector<std::optional<std::string>> inputs_of(const PromptFlags& flags);

// Throws Error{invalid_argument} when `output`, or the name that it has until it is whole, is one
// of the files behind these words (links are followed), which would be lost. Nothing for "-".
void require_apart(const std::string& output, const std::vector<std::optional<std::string>>& words);
// The same, and of what the prompt is read from.
void require_apart(const std::string& output, const PromptFlags& prompt,
                   std::vector<std::optional<std::string>> words);

}  // namespace sinkscope
