// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/cli/command_line.h"
#include "app/cli/console.h"
#include "app/cli/text_windows.h"
#include "capture/checkpoint/model_files.h"
#include "capture/tokenizer/tokenizer.h"
#include "core/capture_layout.h"

namespace sinkscope {

// The text a model reads when nothing else is given: several plain sentences, 64 tokens with
// SmolLM2's vocabulary.
const std::string& built_in_text();

// What is fed to the model, as the flags say it.
struct PromptFlags {
  std::optional<std::string> text, text_file, tokens, tokens_file, prompts;
  std::optional<std::string> bos, max_tokens, pre_tokenizer;
  std::optional<std::string> window, stride, max_windows, window_rule;
  bool chat = false;        // text is wrapped in the model family's template
  bool no_special = false;  // BosRule::text_alone
};

// --text, --text-file, --chat, --bos, --no-special and --pre-tokenizer only (verb tokenize).
void add_text_flags(CommandLine& command, PromptFlags& flags);
// All of them.
void add_prompt_flags(CommandLine& command, PromptFlags& flags);

bool has_prompt(const PromptFlags& flags);

// What can be said of the flags without a model: one prompt at most, numbers that are numbers, a
// window plan that holds together. Throws Error{invalid_argument} naming the flag.
void check_prompt_flags(const PromptFlags& flags);

// The text as it is fed: with --chat wrapped in the template of the tokenizer's family, which is
// said. `bos` becomes `always` where it is automatic and the template begins with BOS.
// Throws Error{unsupported} for a vocabulary of no known family.
std::string fed_text(const std::string& text, bool chat, const Tokenizer& tokenizer, BosRule& bos,
                     Console& console);

// "auto", "always", "never". Throws Error{invalid_argument}.
BosRule parse_bos_rule(const std::optional<std::string>& text);
// The rule of --bos and --no-special. Throws Error{invalid_argument} where they contradict each
// other, or --chat.
BosRule bos_rule_of(const PromptFlags& flags);

// The whole of a file or a pipe, or of `console.in` for "-": at most 256 MiB. Throws Error:
// not_found, io (with the system's reason), invalid_argument (a folder, a device, more than that).
std::string read_whole(const std::string& path, Console& console);
// The same of a text: Error{invalid_argument} names the file and the byte that is no UTF-8.
std::string read_text(const std::string& path, Console& console);

// The prompts of a run, ready to be fed: ids checked against the vocabulary, cut to --max-tokens,
// compared with the model's context (one warning, or Error{invalid_argument} where positions are
// learned). The built-in text when no prompt was given, which is said. Text needs a tokenizer;
// with ids a tokenizer only serves the labels, and its absence is no error. With --window every
// prompt becomes one run a window; `windows`, if given, then says which positions each of them
// scores, in the order of the runs, and is empty otherwise.
// Throws Error: invalid_argument, not_found, corrupt, unsupported.
std::vector<RunInput> read_prompts(const PromptFlags& flags, const ModelFiles& model,
                                   Console& console, std::vector<TextWindow>* windows = nullptr);

// Runs of a capture, for this model: where its vocabulary reads their ids differently, which is
// said, their labels and BOS positions become its own. `from` is the capture.
void relabel(std::vector<RunInput>& runs, const std::optional<std::string>& pre_tokenizer,
             const ModelFiles& model, const std::string& from, Console& console);

// For verbs that score every position of every run: overlapping windows would count tokens twice,
// and the rule of llama.cpp scores half of them. Throws Error{invalid_argument}.
void require_windows_side_by_side(const PromptFlags& flags);

// The last step of read_prompts, for prompts that came another way (--like).
void check_prompts(std::vector<RunInput>& runs, const PromptFlags& flags, const ArchSpec& spec,
                   Console& console);

}  // namespace sinkscope
