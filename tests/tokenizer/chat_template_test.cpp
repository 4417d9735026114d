// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/tokenizer/chat_template.h"

#include <gmock/gmock.h>

#include "capture/tokenizer/vocab_tokenizer.h"
#include "core/error.h"

namespace sinkscope {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<Tokenizer> vocabulary_with(const std::vector<std::string>& tokens) {
  PipelineParts parts;
  parts.pieces = {"a"};
  parts.model = WordLevelRules{};
  for (const std::string& token : tokens)
    parts.added.push_back(
        {.id = 1 + static_cast<int>(parts.added.size()), .content = token, .special = true});
  TokenizerFacts facts;
  facts.bos_id = 1;
  return make_pipeline_tokenizer(std::move(parts), std::move(facts));
}

std::string wrapped(const std::vector<std::string>& tokens, const std::string& text) {
  return apply_chat_template(chat_template_of(*vocabulary_with(tokens)), text);
}

// As transformers' apply_chat_template writes one user turn with add_generation_prompt, without
// BOS and system message.
TEST(ChatTemplate, EveryFamilyWritesItsTurn) {
  EXPECT_EQ(wrapped({"<|im_start|>", "<|im_end|>"}, " Hi\n"),
            "<|im_start|>user\n Hi\n<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(wrapped({"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}, " Hi\n"),
            "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n");
  EXPECT_EQ(wrapped({"<start_of_turn>", "<end_of_turn>"}, " Hi\n"),
            "<start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\n");
}

TEST(ChatTemplate, OnlyThoseWithBosAskForIt) {
  const auto wants_bos = [](const std::vector<std::string>& tokens) {
    return chat_template_of(*vocabulary_with(tokens)).begins_with_bos;
  };
  EXPECT_FALSE(wants_bos({"<|im_start|>", "<|im_end|>"}));
  EXPECT_TRUE(wants_bos({"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}));
  EXPECT_TRUE(wants_bos({"<start_of_turn>", "<end_of_turn>"}));
}

TEST(ChatTemplate, OtherVocabulariesAreRefusedByTheMarkersLookedFor) {
  const auto refusal = [](const std::vector<std::string>& tokens) -> std::string {
    try {
      wrapped(tokens, "x");
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::unsupported);
      return e.what();
    }
    return "accepted";
  };
  EXPECT_THAT(refusal({"<s>"}), HasSubstr("<start_of_turn> (Gemma)"));
  EXPECT_THAT(refusal({"<|im_start|>"}), HasSubstr("<|im_start|> of ChatML and no <|im_end|>"));
}

}  // namespace
}  // namespace sinkscope
