// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/tokenizer/unicode.h"

#include <gmock/gmock.h>

#include "core/error.h"

namespace sinkscope {
namespace {

TEST(Unicode, StepsThroughEveryLength) {
  const std::string text = "aé说😊";
  std::vector<char32_t> codes;
  for (std::int64_t at = 0; at < static_cast<std::int64_t>(text.size());) {
    const Utf8Char c = utf8_at(text, at);
    EXPECT_TRUE(c.is_valid);
    EXPECT_EQ(to_utf8(c.code), text.substr(at, c.size));
    codes.push_back(c.code);
    at += c.size;
  }
  EXPECT_EQ(codes, (std::vector<char32_t>{0x61, 0xE9, 0x8BF4, 0x1F60A}));
}

TEST(Unicode, MalformedTextIsRefusedWithItsPlace) {
  for (const char* bad :
       {"ab\x80", "ab\xC0\x80", "ab\xED\xA0\x80", "ab\xF4\x90\x80\x80", "ab\xE6\x88", "ab\xFF"}) {
    try {
      require_utf8(bad);
      ADD_FAILURE() << "accepted " << bad;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::invalid_argument);
      EXPECT_THAT(e.what(), ::testing::HasSubstr("byte 2 "));
    }
  }
  EXPECT_NO_THROW(require_utf8("\xED\x9F\xBF \xEE\x80\x80 \xF4\x8F\xBF\xBF"));
}

TEST(Unicode, MalformedBytesAreSteppedOverByMaximalSubpart) {
  EXPECT_EQ(utf8_at("\xE6\x88", 0).size, 2);      // cut off: one replacement
  EXPECT_EQ(utf8_at("\xE6\x41", 0).size, 1);      // interrupted
  EXPECT_EQ(utf8_at("\xED\xA0\x80", 0).size, 1);  // a surrogate: three replacements
  EXPECT_EQ(utf8_at("\xF0\x9F\x98z", 0).size, 3);
}

TEST(Unicode, ComposesAndDecomposes) {
  EXPECT_EQ(normalize("Cafe\u0301", NormalForm::nfc), "Caf\u00e9");
  EXPECT_EQ(normalize("Caf\u00e9", NormalForm::nfd), "Cafe\u0301");
  EXPECT_EQ(normalize("\uFB01", NormalForm::nfc), "\uFB01");
  EXPECT_EQ(normalize("\uFB01", NormalForm::nfkc), "fi");
  EXPECT_EQ(normalize(std::string_view("a\0b", 3), NormalForm::nfc), std::string("a\0b", 3));
  EXPECT_EQ(normalize("", NormalForm::nfc), "");
}

TEST(Unicode, MeasuresWhiteSpaceAtBothEnds) {
  EXPECT_EQ(trailing_space("x \u3000\t"), 5);
  EXPECT_EQ(leading_space("\u00A0\n x "), 4);
  EXPECT_EQ(trailing_space(" "), 1);
  EXPECT_EQ(leading_space(""), 0);
  EXPECT_EQ(leading_space("\u180E"), 0);  // no White_Space since Unicode 6.3
  EXPECT_EQ(leading_space("\u200B"), 0);
}

TEST(Unicode, KnowsWordCharacters) {
  EXPECT_TRUE(ends_with_word("naïve\u0301"));
  EXPECT_TRUE(starts_with_word("_x"));
  EXPECT_TRUE(starts_with_word("5"));
  EXPECT_TRUE(starts_with_word("ⓐ"));
  EXPECT_FALSE(starts_with_word("²"));  // a number, no word character
  EXPECT_FALSE(ends_with_word("x-"));
  EXPECT_FALSE(ends_with_word(""));
}

}  // namespace
}  // namespace sinkscope
