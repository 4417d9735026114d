// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/tokenizer/byte_alphabet.h"

#include <gtest/gtest.h>

#include <set>

namespace sinkscope {
namespace {

TEST(ByteAlphabet, SpellsKnownBytes) {
  std::string spelled;
  append_byte_level(spelled, " a\n\x00é");
  EXPECT_EQ(spelled, "ĠaĊ");  // a C string ends at the zero
  spelled.clear();
  append_byte_level(spelled, std::string_view("\0\x7F\xA0\xAD\xE6\x88", 6));
  EXPECT_EQ(spelled, "ĀġłŃæĪ");
}

TEST(ByteAlphabet, EveryByteComesBack) {
  std::set<std::string> spellings;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string original(1, static_cast<char>(byte));
    std::string spelled;
    append_byte_level(spelled, original);
    EXPECT_EQ(from_byte_level(spelled), original) << byte;
    spellings.insert(spelled);
  }
  EXPECT_EQ(spellings.size(), 256u);
}

TEST(ByteAlphabet, CharactersOutsideStayAsTheyAre) { EXPECT_EQ(from_byte_level("说Ġ😊"), "说 😊"); }

}  // namespace
}  // namespace sinkscope
