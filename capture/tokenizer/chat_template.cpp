// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/tokenizer/chat_template.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "capture/tokenizer/tokenizer.h"
#include "capture/tokenizer/unicode.h"
#include "core/error.h"

namespace sinkscope {
namespace {

constexpr const char* kChatMlTokens[] = {"<|im_start|>", "<|im_end|>", nullptr};
constexpr const char* kLlama3Tokens[] = {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>",
                                         nullptr};
constexpr const char* kGemmaTokens[] = {"<start_of_turn>", "<end_of_turn>", nullptr};

constexpr ChatTemplate kTemplates[] = {
    {.name = "ChatML",
     .turn = "<|im_start|>",
     .before = "<|im_start|>user\n",
     .after = "<|im_end|>\n<|im_start|>assistant\n",
     .tokens = kChatMlTokens},
    {.name = "Llama-3",
     .turn = "<|start_header_id|>",
     .before = "<|start_header_id|>user<|end_header_id|>\n\n",
     .after = "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
     .tokens = kLlama3Tokens,
     .trims = true,
     .begins_with_bos = true},
    {.name = "Gemma",
     .turn = "<start_of_turn>",
     .before = "<start_of_turn>user\n",
     .after = "<end_of_turn>\n<start_of_turn>model\n",
     .tokens = kGemmaTokens,
     .trims = true,
     .begins_with_bos = true},
};

}  // namespace

const ChatTemplate& chat_template_of(const Tokenizer& tokenizer) {
  for (const ChatTemplate& chat : kTemplates) {
    if (tokenizer.added_id(chat.turn) < 0) continue;
    for (const char* const* token = chat.tokens; *token != nullptr; ++token)
      if (tokenizer.added_id(*token) < 0)
        throw Error(ErrorKind::unsupported,
                    fmt::format("--chat: the vocabulary has {} of {} and no {}", chat.turn,
                                chat.name, *token));
    return chat;
  }
  std::vector<std::string> known;
  for (const ChatTemplate& chat : kTemplates)
    known.push_back(fmt::format("{} ({})", chat.turn, chat.name));
  throw Error(ErrorKind::unsupported,
              fmt::format("--chat: the vocabulary has no token that begins a turn, expected {}",
                          fmt::join(known, ", ")));
}

std::string apply_chat_template(const ChatTemplate& chat, std::string_view text) {
  if (chat.trims) {
    text.remove_prefix(static_cast<std::size_t>(leading_space(text)));
    text.remove_suffix(static_cast<std::size_t>(trailing_space(text)));
  }
  return fmt::format("{}{}{}", chat.before, text, chat.after);
}

}  // namespace sinkscope
