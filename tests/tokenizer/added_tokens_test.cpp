// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/tokenizer/added_tokens.h"

#include <gmock/gmock.h>

namespace sinkscope {
namespace {

using ::testing::ElementsAre;

// Fragments as text: "<7>" for a token, the text otherwise.
std::vector<std::string> split(const AddedTokens& tokens, const std::string& text) {
  std::vector<std::string> result;
  for (const Fragment& f : tokens.split(text))
    result.push_back(f.id >= 0 ? "<" + std::to_string(f.id) + ">" : f.text);
  return result;
}

TEST(AddedTokens, LongestAtTheLeftmostPlaceWins) {
  const AddedTokens tokens(
      {{.id = 1, .content = "ab"}, {.id = 2, .content = "abc"}, {.id = 3, .content = "bcde"}}, {});
  EXPECT_THAT(split(tokens, "xabcdeab"), ElementsAre("x", "<2>", "de", "<1>"));
  EXPECT_THAT(split(tokens, ""), ElementsAre());
  EXPECT_THAT(split(tokens, "bcde"), ElementsAre("<3>"));
}

TEST(AddedTokens, OfEqualContentsTheFirstCountsAndNoneIsEmpty) {
  const AddedTokens tokens(
      {{.id = 0, .content = ""}, {.id = 1, .content = "ab"}, {.id = 2, .content = "ab"}}, {});
  EXPECT_THAT(split(tokens, "cab"), ElementsAre("c", "<1>"));
}

TEST(AddedTokens, AnyNumberOfLengthsIsFoundInLinearTime) {
  std::vector<AddedToken> many;
  for (int n = 1; n <= 2000; ++n)
    many.push_back({.id = n, .content = "a" + std::string(static_cast<std::size_t>(n), 'b')});
  const AddedTokens tokens(std::move(many), {});
  const std::string text(1 << 18, 'a');
  EXPECT_THAT(split(tokens, text + "bbbc"), ElementsAre(text.substr(1), "<3>", "c"));
}

TEST(AddedTokens, StripTakesTheSpaceAround) {
  const AddedTokens tokens(
      {{.id = 1, .content = "<l>", .lstrip = true}, {.id = 2, .content = "<r>", .rstrip = true}},
      {});
  EXPECT_THAT(split(tokens, "a \u3000<l> b"), ElementsAre("a", "<1>", " b"));
  EXPECT_THAT(split(tokens, "a <r>\n\tb"), ElementsAre("a ", "<2>", "b"));
  EXPECT_THAT(split(tokens, "<r> <l>"), ElementsAre("<2>", "<1>"));
}

TEST(AddedTokens, SingleWordsStandAlone) {
  const AddedTokens tokens({{.id = 1, .content = "cat", .single_word = true}}, {});
  EXPECT_THAT(split(tokens, "cat concat cats cat."),
              ElementsAre("<1>", " concat cats ", "<1>", "."));
  EXPECT_THAT(split(tokens, "écat"), ElementsAre("écat"));
}

TEST(AddedTokens, NormalizedOnesAreSoughtAfterNormalization) {
  const AddedTokens tokens({{.id = 1, .content = "e\u0301", .normalized = true},
                            {.id = 2, .content = "a\u0301", .normalized = false}},
                           {NormalForm::nfc});
  EXPECT_THAT(split(tokens, "x\u00e9y"), ElementsAre("x", "<1>", "y"));
  EXPECT_THAT(split(tokens, "xe\u0301y"), ElementsAre("x", "<1>", "y"));
  EXPECT_THAT(split(tokens, "xa\u0301y"), ElementsAre("x", "<2>", "y"));
  EXPECT_THAT(split(tokens, "x\u00e1y"), ElementsAre("x\u00e1y"));
}

}  // namespace
}  // namespace sinkscope
