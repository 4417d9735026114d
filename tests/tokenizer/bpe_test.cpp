// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/tokenizer/bpe.h"

#include <gmock/gmock.h>

#include "core/error.h"

namespace sinkscope {
namespace {

using ::testing::ElementsAre;

std::vector<int> encode(const BpeModel& model, std::string_view piece) {
  std::vector<int> ids;
  model.encode(piece, ids);
  return ids;
}

TEST(BpeModel, MergesByRankThenFromTheLeft) {
  const Vocabulary vocabulary({"a", "b", "c", "bc", "ab", "abc", "aa", "aaaa"});
  const BpeModel model(vocabulary, {{"b", "c"}, {"a", "b"}, {"a", "bc"}, {"a", "a"}, {"aa", "aa"}},
                       {});
  EXPECT_THAT(encode(model, "abc"), ElementsAre(5));
  EXPECT_THAT(encode(model, "abb"), ElementsAre(4, 1));
  EXPECT_THAT(encode(model, "aaa"), ElementsAre(6, 0));
  EXPECT_THAT(encode(model, "aaaaa"), ElementsAre(7, 0));
  EXPECT_THAT(encode(model, ""), ElementsAre());
}

TEST(BpeModel, AWholePieceCanSkipTheMerges) {
  const Vocabulary vocabulary({"a", "b", "c", "bc", "abc"});
  const std::vector<BpeModel::Merge> merges = {{"b", "c"}};
  EXPECT_THAT(encode(BpeModel(vocabulary, merges, {}), "abc"), ElementsAre(0, 3));
  EXPECT_THAT(encode(BpeModel(vocabulary, merges, {.ignore_merges = true}), "abc"), ElementsAre(4));
}

TEST(BpeModel, UnknownCharactersAreDroppedCountedOrFused) {
  const Vocabulary vocabulary({"a", "?"});
  std::vector<int> ids;
  EXPECT_EQ(BpeModel(vocabulary, {}, {}).encode("xaéx", ids), 3);
  EXPECT_THAT(ids, ElementsAre(0));
  EXPECT_THAT(encode(BpeModel(vocabulary, {}, {.unk_id = 1}), "xaéx"), ElementsAre(1, 0, 1, 1));
  EXPECT_THAT(encode(BpeModel(vocabulary, {}, {.fuse_unk = true, .unk_id = 1}), "xaéx"),
              ElementsAre(1, 0, 1));
}

TEST(BpeModel, ByteFallbackNeedsAllBytesOfACharacter) {
  std::vector<std::string> pieces = {"a", "?"};
  const char* hex = "0123456789ABCDEF";
  for (int byte = 0; byte < 256; ++byte)
    pieces.push_back(std::string("<0x") + hex[byte / 16] + hex[byte % 16] + ">");
  const BpeOptions options{.byte_fallback = true, .unk_id = 1};
  const Vocabulary whole(pieces);
  EXPECT_THAT(encode(BpeModel(whole, {}, options), "aé"), ElementsAre(0, 2 + 0xC3, 2 + 0xA9));
  pieces[2 + 0xA9] = "none";
  const Vocabulary partial(pieces);
  EXPECT_THAT(encode(BpeModel(partial, {}, options), "aéèé"),
              ElementsAre(0, 1, 2 + 0xC3, 2 + 0xA8, 1));
}

// The vocabulary of the package's own test. Tokens stand as in the text, where the package (0.23)
// puts bytes in front of the unknown characters before them.
TEST(BpeModel, OneByteTokenIsEnoughForItsCharacter) {
  const Vocabulary vocabulary({"<unk>", "<0x61>"});
  const BpeModel model(vocabulary, {}, {.byte_fallback = true, .fuse_unk = true, .unk_id = 0});
  EXPECT_THAT(encode(model, "c"), ElementsAre(0));
  EXPECT_THAT(encode(model, "a"), ElementsAre(1));
  EXPECT_THAT(encode(model, "accab"), ElementsAre(1, 0, 1, 0));
}

TEST(BpeModel, AMergeOfNothingKnownIsCorrupt) {
  const Vocabulary vocabulary({"a", "b"});
  try {
    BpeModel model(vocabulary, {{"a", "b"}}, {});
    FAIL() << "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::corrupt);
    EXPECT_THAT(e.what(), ::testing::HasSubstr("'ab'"));
  }
}

TEST(BpeModel, AnEndlessPieceTakesNearlyLinearTime) {
  std::vector<std::string> pieces = {"a"};
  std::vector<BpeModel::Merge> merges;
  for (int i = 0; i < 12; ++i) {
    merges.emplace_back(pieces.back(), pieces.back());
    pieces.push_back(pieces.back() + pieces.back());
  }
  const Vocabulary vocabulary(pieces);
  const BpeModel model(vocabulary, merges, {});
  EXPECT_THAT(encode(model, std::string((1 << 19) + 5, 'a')).size(), (1 << 19) / 4096 + 2);
}

}  // namespace
}  // namespace sinkscope
