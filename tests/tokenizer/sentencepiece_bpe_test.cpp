// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/tokenizer/sentencepiece_bpe.h"

#include <gmock/gmock.h>

namespace sinkscope {
namespace {

using ::testing::ElementsAre;

std::vector<int> encode(const SentencePieceBpe& model, std::string_view text) {
  std::vector<int> ids;
  model.encode(text, ids);
  return ids;
}

TEST(SentencePieceBpe, TheHighestScoreMergesFirst) {
  const Vocabulary vocabulary({"a", "b", "c", "ab", "bc", "abc"});
  const std::vector<TokenType> types(6, TokenType::normal);
  const SentencePieceBpe right(vocabulary, {-9, -9, -9, -2, -1, -9}, types, -1);
  EXPECT_THAT(encode(right, "abcab"), ElementsAre(5, 3));
  EXPECT_THAT(encode(right, "abb"), ElementsAre(3, 1));
  const SentencePieceBpe tie(vocabulary, {-9, -9, -9, -1, -1, -9}, types, -1);
  EXPECT_THAT(encode(tie, "abcc"), ElementsAre(5, 2));
}

TEST(SentencePieceBpe, ControlAndBytePiecesAreNeverBuiltFromText) {
  const Vocabulary vocabulary({"a", "b", "ab", "ba"});
  const SentencePieceBpe model(
      vocabulary, {0, 0, 0, 0},
      {TokenType::normal, TokenType::normal, TokenType::control, TokenType::user_defined}, -1);
  EXPECT_THAT(encode(model, "ab"), ElementsAre(0, 1));
  EXPECT_THAT(encode(model, "ba"), ElementsAre(3));
}

TEST(SentencePieceBpe, WordsAreIndependentUnlessAPieceReachesAcross) {
  const std::string text = "▁a▁▁bé▁c▁";
  const std::vector<TokenType> types(3, TokenType::normal);
  const auto parts = [&](const Vocabulary& vocabulary) {
    const SentencePieceBpe model(vocabulary, {0, 0, 0}, types, -1);
    std::vector<std::string> cut;
    for (const Span& part : model.independent_parts(text)) cut.emplace_back(slice(text, part));
    return cut;
  };
  EXPECT_THAT(parts(Vocabulary({"▁", "▁▁a", "b"})), ElementsAre("▁a", "▁▁bé", "▁c", "▁"));
  EXPECT_THAT(parts(Vocabulary({"▁", "▁▁a", "b▁"})), ElementsAre(text));
}

TEST(SentencePieceBpe, WithoutAnyTokenACharacterIsDroppedAndCounted) {
  const Vocabulary vocabulary({"a"});
  const SentencePieceBpe model(vocabulary, {0}, {TokenType::normal}, -1);
  std::vector<int> ids;
  EXPECT_EQ(model.encode("xéa", ids), 2);
  EXPECT_THAT(ids, ElementsAre(0));
}

TEST(SentencePieceBpe, BytePiecesAreSpelledInHex) {
  EXPECT_EQ(byte_of_piece("<0x0A>"), 10);
  EXPECT_EQ(byte_of_piece("<0xFF>"), 255);
  for (const char* other : {"<0x0a>", "<0xA>", "<0xGG>", "0x0A", "", "<0x0A> "})
    EXPECT_EQ(byte_of_piece(other), -1) << other;
}

}  // namespace
}  // namespace sinkscope
