// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/tokenizer/pre_tokenizer.h"

#include <gmock/gmock.h>

namespace sinkscope {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> cut(const PreTokenizer& pre_tokenizer, const std::string& text) {
  const Pieces pieces = pre_tokenizer.run(text);
  std::vector<std::string> result;
  for (const Span& span : pieces.spans) result.emplace_back(slice(pieces.text, span));
  return result;
}

std::vector<std::string> cut_at_dashes(SplitBehavior behavior, bool invert) {
  PreTokenizer made;
  made.add(SplitStage{Regex("-"), behavior, invert});
  return cut(made, "-the-final--countdown");
}

std::vector<std::string> cut_by(const char* rule, const std::string& text) {
  return cut(make_pre_tokenizer(*find_split_rule(rule)), text);
}

// The five behaviors on the example of the documentation of the package tokenizers.
TEST(PreTokenizer, DelimitersBehaveAsTold) {
  EXPECT_THAT(cut_at_dashes(SplitBehavior::removed, false),
              ElementsAre("the", "final", "countdown"));
  EXPECT_THAT(cut_at_dashes(SplitBehavior::isolated, false),
              ElementsAre("-", "the", "-", "final", "-", "-", "countdown"));
  EXPECT_THAT(cut_at_dashes(SplitBehavior::merged_with_previous, false),
              ElementsAre("-", "the-", "final-", "-", "countdown"));
  EXPECT_THAT(cut_at_dashes(SplitBehavior::merged_with_next, false),
              ElementsAre("-the", "-final", "-", "-countdown"));
  EXPECT_THAT(cut_at_dashes(SplitBehavior::contiguous, false),
              ElementsAre("-", "the", "-", "final", "--", "countdown"));
}

TEST(PreTokenizer, InvertedGapsAreTheDelimiters) {
  EXPECT_THAT(cut_at_dashes(SplitBehavior::removed, true), ElementsAre("-", "-", "-", "-"));
  EXPECT_THAT(cut_at_dashes(SplitBehavior::merged_with_previous, true),
              ElementsAre("-the", "-final", "-", "-countdown"));
}

TEST(PreTokenizer, EveryPieceMayGetAPrefixSpace) {
  PreTokenizer made;
  made.add(SplitStage{Regex(R"(\d)"), SplitBehavior::isolated, false});
  made.add(ByteLevelStage{.add_prefix_space = true, .use_regex = false});
  EXPECT_THAT(cut(made, "ab1 c"), ElementsAre("Ġab", "Ġ1", "Ġc"));
  EXPECT_THAT(cut(made, ""), IsEmpty());
}

TEST(PreTokenizer, Gpt2SplitsContractionsNumbersAndSpaces) {
  EXPECT_THAT(cut_by("gpt-2", "Isn't it 1234  é!\n\n x"),
              ElementsAre("Isn", "'t", "Ġit", "Ġ1234", "Ġ", "ĠÃ©", "!", "ĊĊ", "Ġx"));
}

TEST(PreTokenizer, FamiliesDifferInDigits) {
  EXPECT_THAT(cut_by("llama-bpe", "x 1234'S"), ElementsAre("x", "Ġ", "123", "4", "'S"));
  EXPECT_THAT(cut_by("qwen2", "x 123'S"), ElementsAre("x", "Ġ", "1", "2", "3", "'S"));
  EXPECT_THAT(cut_by("starcoder", "x 12'S"), ElementsAre("x", "Ġ", "1", "2", "'", "S"));
  EXPECT_THAT(cut_by("gpt-4o", "CamelCase's 1234/\n"),
              ElementsAre("Camel", "Case's", "Ġ", "123", "4", "/Ċ"));
}

TEST(PreTokenizer, MongolianVowelSeparatorIsNoSpace) {
  EXPECT_THAT(cut_by("gpt-2", "a\u180E b"), ElementsAre("a", "áłİ", "Ġb"));
  EXPECT_THAT(cut_by("llama3", "a\u180Eb"), ElementsAre("a", "áłİb"));
}

TEST(PreTokenizer, RulesAreFoundByEverySpelling) {
  EXPECT_EQ(find_split_rule("llama-bpe"), find_split_rule("llama3"));
  EXPECT_EQ(find_split_rule("starcoder"), find_split_rule("smollm"));
  EXPECT_EQ(find_split_rule("default"), nullptr);
  EXPECT_EQ(find_split_rule(""), nullptr);
}

}  // namespace
}  // namespace sinkscope
