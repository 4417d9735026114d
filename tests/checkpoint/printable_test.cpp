// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/printable.h"

#include <gtest/gtest.h>

namespace sinkscope {
namespace {

TEST(Printable, ControlCharactersNeverReachATerminal) {
  EXPECT_EQ(printable("model.norm"), "model.norm");
  EXPECT_EQ(printable("a\nb\x1b[2J\x7f"), "a\\x0Ab\\x1B[2J\\x7F");
  EXPECT_EQ(printable("a\xC2\x9B"
                      "b"),
            "a\\u009Bb");  // a terminal's CSI in one character
  EXPECT_EQ(printable("caf\xC3\xA9 \xC2\xA0"), "caf\xC3\xA9 \xC2\xA0");
}

TEST(Printable, WhatIsNotUtf8IsEscaped) {
  EXPECT_EQ(printable("a\xFF\xC3\xA9"), "a\\xFF\\xC3\\xA9");
}

TEST(Printable, LongTextIsCutBetweenCharacters) {
  EXPECT_EQ(printable(std::string(121, 'x')), std::string(120, 'x') + "...");
  EXPECT_EQ(printable(std::string(119, 'x') + "\xC3\xA9"), std::string(119, 'x') + "...");
  EXPECT_EQ(printable(std::string(120, 'x')), std::string(120, 'x'));
  EXPECT_TRUE(is_utf8(printable(std::string(300, '\xE6'))));
}

TEST(Printable, ListsAreShort) {
  EXPECT_EQ(listed({"a", "b"}), "a, b");
  EXPECT_EQ(listed({"a", "b", "c\n"}, 2), "a, b and 1 more");
  EXPECT_EQ(shape_text({3, 4}), "[3, 4]");
  EXPECT_EQ(shape_text({}), "[]");
}

}  // namespace
}  // namespace sinkscope
