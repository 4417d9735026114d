// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/tokenizer/regex.h"

#include <gmock/gmock.h>

#include "core/error.h"

namespace sinkscope {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> matches(const std::string& pattern, const std::string& text) {
  std::vector<Span> spans;
  Regex(pattern).find_all(text, spans);
  std::vector<std::string> found;
  for (const Span& span : spans) found.emplace_back(slice(text, span));
  return found;
}

TEST(Regex, SpaceIsWhiteSpace) {
  for (const char* space :
       {"\t", "\v", "\f", " ", "\u0085", "\u00A0", "\u1680", "\u2028", "\u3000"})
    EXPECT_THAT(matches(R"(\s)", space), ElementsAre(space));
  // PCRE2 itself takes U+180E; it left White_Space in Unicode 6.3.
  for (const char* other : {"\u180E", "\x1C", "\u200B", "\uFEFF"}) {
    EXPECT_THAT(matches(R"(\s)", other), IsEmpty());
    EXPECT_THAT(matches(R"(\S)", other), ElementsAre(other));
    EXPECT_THAT(matches(R"([^\s\p{L}])", other), ElementsAre(other));
    EXPECT_THAT(matches(R"([\S])", other), ElementsAre(other));
  }
}

TEST(Regex, CaseIsFoldedInsideAGroupOnly) {
  EXPECT_THAT(matches("(?i:'s)s", "'Ss 's 'SS"), ElementsAre("'Ss"));
  EXPECT_THAT(matches("(?i:'s)", "'\u017F"), ElementsAre("'\u017F"));  // long s folds to s
}

TEST(Regex, LinesAreRubys) {
  EXPECT_THAT(matches("^a$", "a\na\nb"), ElementsAre("a", "a"));
  EXPECT_THAT(matches("a.", "a\na\r"), ElementsAre("a\r"));
}

TEST(Regex, WordAndHexAreRubys) {
  EXPECT_THAT(matches(R"(\w+)", "a\u0301_1½ⓐ \u2155"), ElementsAre("a\u0301_1½ⓐ"));
  EXPECT_THAT(matches(R"([\w-]+)", "a-b c"), ElementsAre("a-b", "c"));
  EXPECT_THAT(matches(R"(\h+)", "xfF0 \t"), ElementsAre("fF0"));
}

TEST(Regex, ClassInAClassIsAUnion) {
  EXPECT_THAT(matches(R"( ?[^(\s|[.,!?…])]+)", "Hi (you), there!"),
              ElementsAre("Hi", "you", " there"));
}

TEST(Regex, EmptyMatchesDoNotRepeat) {
  std::vector<Span> spans;
  Regex(R"((?=\d))").find_all("é12", spans);
  EXPECT_THAT(spans, ElementsAre(Span{2, 2}, Span{3, 3}));
}

TEST(Regex, LookaheadEndsWithTheSubject) {
  std::vector<Span> spans;
  const std::string text = "a  b";
  Regex(R"(\s+(?!\S))").find_all(std::string_view(text).substr(0, 3), spans);
  EXPECT_THAT(spans, ElementsAre(Span{1, 3}));
}

TEST(Regex, LiteralsAreNotPatterns) {
  std::vector<Span> spans;
  Regex("a.+[", Regex::Syntax::literal).find_all("a.+[ab+[", spans);
  EXPECT_THAT(spans, ElementsAre(Span{0, 4}));
}

TEST(Regex, WhatIsNotUnderstoodIsRefusedByName) {
  for (const char* bad : {R"(\bx)", "(?m:a.b)", "[a&&b]", "[a[^b]]", "a{,3}", "(a", "[]a]", R"(\K)",
                          "a{1,2}+", "[[:alpha", R"([\W])"}) {
    try {
      Regex regex(bad);
      ADD_FAILURE() << "accepted " << bad;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::unsupported);
      EXPECT_THAT(e.what(), ::testing::HasSubstr(bad));
    }
  }
}

TEST(Regex, LongRunsTakeLinearTime) {
  const std::string text(1 << 20, 'a');
  EXPECT_THAT(matches(R"([^\r\n\p{L}\p{N}]?\p{L}+|\s+(?!\S)|\s+)", text), ElementsAre(text));
}

}  // namespace
}  // namespace sinkscope
