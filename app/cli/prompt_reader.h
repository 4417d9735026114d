// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/cli/console.h"
#include "app/cli/prompts.h"

namespace sinkscope {

// Makes runs of texts and ids for one model, whose tokenizer it opens once, when it is first
// needed. The model, the console and the flags' rules are those it was made with.
class PromptReader {
 public:
  PromptReader(const PromptFlags& flags, const ModelFiles& model, Console& console);

  // Throws Error{unsupported} for a model without a tokenizer; what open_tokenizer throws.
  RunInput from_text(const std::string& text, const std::string& name);
  // Labels are empty where there is no tokenizer.
  RunInput from_ids(std::vector<int> ids, const std::string& name);
  // One run a line: {"text":…} or {"tokens":[…]}, optional "name". `path` is for messages.
  // Throws Error{invalid_argument} naming the line.
  std::vector<RunInput> from_json_lines(const std::string& content, const std::string& path);

 private:
  const Tokenizer& required_tokenizer();
  const Tokenizer* labeling_tokenizer();
  RunInput from_json_line(const std::string& line, const std::string& where);

  const ModelFiles& model_;
  Console& console_;
  BosRule bos_;
  bool chat_;
  TokenizerOptions options_;
  std::unique_ptr<Tokenizer> tokenizer_;
  bool tried_ = false, said_bos_ = false;
};

}  // namespace sinkscope
