// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/size_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "core/error.h"

namespace sinkscope {
namespace {

RunInput run_of(int n_tokens) {
  RunInput run;
  run.token_ids.assign(static_cast<std::size_t>(n_tokens), 1);
  run.token_text.resize(static_cast<std::size_t>(n_tokens));
  return run;
}

CaptureLayout layout_of(const std::vector<int>& lengths) {
  CaptureLayout layout;
  layout.model.n_layers = 5;
  layout.model.n_heads = 6;
  layout.model.n_kv_heads = 2;
  layout.model.head_dim = 8;
  layout.model.d_model = 40;
  layout.model.vocab_size = 100;
  layout.attention_layers = {0, 1, 2, 3, 4};
  for (const int length : lengths) layout.runs.push_back(run_of(length));
  return layout;
}

std::map<std::string, std::int64_t> groups(const CaptureLayout& layout, const ArchSpec& arch = {}) {
  std::map<std::string, std::int64_t> bytes;
  for (const SizeRow& row : size_table(layout, arch)) bytes[row.group] = row.bytes;
  return bytes;
}

TEST(SizeTable, TheStreamIsFourBytesASiteTokenAndDim) {
  const auto bytes = groups(layout_of({300}));
  EXPECT_EQ(bytes.at("residual/stream"), 4 * (2 * 5 + 1) * 300 * 40);
  EXPECT_EQ(bytes.count("attention/pattern"), 0u);
}

TEST(SizeTable, RunsAddUpWhetherTheirLengthsAgreeOrNot) {
  const auto one = groups(layout_of({300})), other = groups(layout_of({70}));
  const auto both = groups(layout_of({300, 70, 300}));
  for (const auto& [group, bytes] : both) {
    const std::int64_t expected = 2 * one.at(group) + other.at(group);
    EXPECT_LE(bytes, expected) << group;
    if (group == "residual/stream" || group == "attention") {
      EXPECT_EQ(bytes, expected) << group;
    }
  }
}

TEST(SizeTable, MapChunksAboveTheDiagonalAreNotCounted) {
  CaptureLayout layout = layout_of({1000});
  layout.pattern.layers = {0, 1, 2};
  layout.pattern.heads = {0, 5};
  // 1000 tokens: chunks of 250, four by four, ten of them touch the triangle.
  EXPECT_EQ(groups(layout).at("attention/pattern"), 3 * 2 * 10 * 250 * 250 * 4);
}

// 1000 tokens: chunks of 250. A window of 100 reaches back into the chunk before, one of 252 into
// that at most: rows 250 … 499 see keys from 0 on, rows 500 … 749 from 249 on.
TEST(SizeTable, MapChunksBeforeAWindowAreNotCounted) {
  CaptureLayout layout = layout_of({1000});
  layout.pattern.layers = {0, 1, 2, 3};
  layout.pattern.heads = {0, 5};
  ArchSpec arch;
  arch.window = {0, 100, 252, 1, 7};
  EXPECT_EQ(groups(layout, arch).at("attention/pattern"),
            (10 + (1 + 2 + 2 + 2) + (1 + 2 + 3 + 3) + 4) * 2 * 250 * 250 * 4);
  // One map of them all, as wide as the widest.
  layout.pattern.layers = {1, 2};
  layout.pattern.reduce = Reduce::mean;
  layout.pattern.over = ReduceOver::layers;
  EXPECT_EQ(groups(layout, arch).at("attention/pattern"), 9 * 2 * 250 * 250 * 4);
}

TEST(SizeTable, MapsOfAnEncoderAreWhole) {
  CaptureLayout layout = layout_of({1000});
  layout.pattern.layers = {0, 1, 2};
  layout.pattern.heads = {0, 5};
  ArchSpec arch;
  arch.bidirectional = true;
  arch.window.assign(5, 0);
  EXPECT_EQ(groups(layout, arch).at("attention/pattern"), 3 * 2 * 1000 * 1000 * 4);
}

// 257 tokens are two chunks of 129, stored whole.
TEST(SizeTable, ChunksAreStoredWhole) {
  CaptureLayout layout = layout_of({257});
  layout.taps = {{"attn.hook_q", {0, 3}, {6, kSeqLen, 8}}};
  EXPECT_EQ(groups(layout).at("taps/attn.hook_q"), 2 * 6 * 258 * 8 * 4 + 2 * 4);
}

TEST(SizeTable, SelectedRowsAreCountedWhole) {
  CaptureLayout layout = layout_of({1000});
  layout.pattern.layers = {0, 1, 2};
  layout.pattern.heads = {0, 5};
  layout.pattern.rows = {998, 999};
  EXPECT_EQ(groups(layout).at("attention/pattern"), 3 * 2 * 2 * 1000 * 4);
}

// 32 layers x 32 heads x 4096 tokens are 64 GiB: said beforehand, not found out.
TEST(FieldCases, FC34_TheSizeOfAllMapsIsKnownBeforehand) {
  CaptureLayout layout = layout_of({4096});
  layout.model.n_heads = 32;
  layout.attention_layers.clear();
  for (int i = 0; i < 32; ++i) {
    layout.attention_layers.push_back(i);
    layout.pattern.layers.push_back(i);
    layout.pattern.heads.push_back(i);
  }
  const std::int64_t bytes = groups(layout).at("attention/pattern");
  EXPECT_GT(bytes, std::int64_t{32} << 30);
  EXPECT_LE(bytes, std::int64_t{64} << 30);
}

TEST(RequireFreeSpace, SaysHowMuchIsThere) {
  EXPECT_NO_THROW(require_free_space("x.h5", 1));
  try {
    require_free_space("x.h5", std::int64_t{1} << 60);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("1.0 EiB"));
  }
}

TEST(RequireFreeSpace, AFolderThatIsNotThereIsAnIoError) {
  try {
    require_free_space("no/such/folder/x.h5", 1);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::io);
  }
}

}  // namespace
}  // namespace sinkscope
