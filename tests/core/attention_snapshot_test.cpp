// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/snapshot/attention_snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "core/snapshot/thumbnail_snapshot.h"
#include "core/what_if/head_preview.h"
#include "tests/support/fake_capture.h"

namespace sinkscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kA = 2, kH = 3, kT = 5;
const std::vector<int> kLayers = {0, 2};

// A causal row: key 0 gets `sink`, the others share the rest evenly; row 0 gives all to itself.
float weight(int layer_slot, int head, int q, int k) {
  if (k > q) return 0;
  const float sink = 0.2F + 0.2F * static_cast<float>(layer_slot) + 0.1F * static_cast<float>(head);
  if (q == 0) return 1;
  return k == 0 ? sink : (1 - sink) / static_cast<float>(q);
}

std::vector<float> maps(int n_tokens) {
  std::vector<float> all;
  for (int a = 0; a < kA; ++a)
    for (int h = 0; h < kH; ++h)
      for (int q = 0; q < n_tokens; ++q)
        for (int k = 0; k < n_tokens; ++k) all.push_back(weight(a, h, q, k));
  return all;
}

test::FakeCapture capture_of(int n_tokens) {
  test::FakeCapture capture;
  capture.facts.name = "tiny";
  capture.facts.n_layers = 4;
  capture.facts.n_heads = kH;
  RunInput input;
  for (int t = 0; t < n_tokens; ++t) input.token_ids.push_back(t);
  capture.add_run("run0", input);
  test::put_attention(capture, "run0", kLayers, kH, maps(n_tokens));
  return capture;
}

// Recorded maps of layer 2, heads 0 and 2, queries 1, 2 and 4 only.
void put_some_maps(test::FakeCapture& capture) {
  std::vector<double> values;
  for (const int head : {0, 2})
    for (const int q : {1, 2, 4})
      for (int k = 0; k < kT; ++k) values.push_back(weight(1, head, q, k));
  capture.put("run0", "attention/pattern", {1, 2, 3, kT}, values);
  capture.put("run0", "attention/pattern_layers", {1}, {2});
  capture.put("run0", "attention/pattern_heads", {2}, {0, 2});
  capture.put("run0", "attention/pattern_rows", {3}, {1, 2, 4});
}

AttentionRequest one_head(int layer, int head) {
  AttentionRequest request;
  request.run = "run0";
  request.layers = {layer};
  request.heads = {head};
  return request;
}

TEST(AttentionSnapshot, ShowsOneHeadOfTheExactWindowWhenNoMapIsRecorded) {
  const auto snapshot = read_attention(capture_of(kT), one_head(2, 1));
  EXPECT_EQ(snapshot.source, AttentionSource::window);
  EXPECT_EQ(snapshot.source_text, "exact map");
  EXPECT_EQ(snapshot.title, "blocks.2 (3rd of 4), head 1");
  EXPECT_EQ(snapshot.map.rows(), kT);
  EXPECT_EQ(snapshot.map.cols(), kT);
  EXPECT_FLOAT_EQ(static_cast<float>(snapshot.map.at(3, 0)), 0.5F);
  EXPECT_FLOAT_EQ(static_cast<float>(snapshot.map.at(4, 3)), 0.5F / 4);
  EXPECT_FALSE(snapshot.map.exists(2, 3)) << "the future is not there";
  EXPECT_TRUE(snapshot.map.exists(2, 2));
  // Row 0 gives key 0 all of it, the four others a half.
  EXPECT_NEAR(snapshot.sink_score, (1 + 4 * 0.5) / 5, 1e-6);
  EXPECT_NEAR(snapshot.key_mass[0], 3, 1e-6);
  EXPECT_THAT(snapshot.visible, ElementsAre(5, 4, 3, 2, 1));
  EXPECT_THAT(snapshot.key_labels, ElementsAre("t0", "t1", "t2", "t3", "t4"));
}

TEST(AttentionSnapshot, RecordedRowsKeepTheirQueries) {
  auto capture = capture_of(kT);
  put_some_maps(capture);
  const auto snapshot = read_attention(capture, one_head(2, 2));
  EXPECT_EQ(snapshot.source, AttentionSource::pattern);
  EXPECT_EQ(snapshot.source_text, "recorded map, 3 of 5 queries");
  EXPECT_THAT(snapshot.queries, ElementsAre(1, 2, 4));
  EXPECT_THAT(snapshot.query_labels, ElementsAre("t1", "t2", "t4"));
  EXPECT_EQ(snapshot.map.rows(), 3);
  EXPECT_EQ(snapshot.map.cols(), kT);
  EXPECT_FLOAT_EQ(static_cast<float>(snapshot.map.at(2, 0)), 0.6F);
  EXPECT_EQ(snapshot.map.span(1), (CellSpan{0, 3})) << "row 1 is query 2";
  // A head without a recorded map comes from the window.
  EXPECT_EQ(read_attention(capture, one_head(2, 1)).source, AttentionSource::window);
}

TEST(AttentionSnapshot, MeanAndMaximumRunOverTheChosenHeads) {
  AttentionRequest request = one_head(0, 0);
  request.heads = {0, 2};
  request.combine = Combine::mean;
  const auto capture = capture_of(kT);
  EXPECT_NEAR(read_attention(capture, request).map.at(3, 0), (0.2 + 0.4) / 2, 1e-6);
  request.combine = Combine::max;
  EXPECT_NEAR(read_attention(capture, request).map.at(3, 0), 0.4, 1e-6);
  EXPECT_NEAR(read_attention(capture, request).map.at(3, 1), 0.8 / 3, 1e-6);
  EXPECT_EQ(read_attention(capture, request).title, "largest over blocks.0 (1st of 4), 2 heads");
  request = {};
  request.run = "run0";
  request.combine = Combine::mean;
  const auto all = read_attention(capture, request);
  EXPECT_EQ(all.title, "mean over all 2 layers, all 3 heads");
  EXPECT_NEAR(all.map.at(4, 0), 0.4, 1e-6);
  EXPECT_NEAR(all.sink_score, (1 + 4 * 0.4) / 5, 1e-6);
}

// FC-39: "which token do all heads look at?" is not answered by the sink.
TEST(FieldCases, FC39_WithoutTheSinkRowsSumToOneAgain) {
  AttentionRequest request = one_head(2, 1);
  request.view = AttentionView::sink_removed;
  const auto snapshot = read_attention(capture_of(kT), request);
  for (int q = 1; q < kT; ++q) {
    EXPECT_FALSE(snapshot.map.exists(q, 0));
    double sum = 0;
    for (int k = 1; k <= q; ++k) sum += snapshot.map.at(q, k);
    EXPECT_NEAR(sum, 1, 1e-6) << "query " << q;
  }
  EXPECT_EQ(snapshot.map.span(0).begin, snapshot.map.span(0).end) << "query 0 has nothing else";
  EXPECT_THAT(snapshot.title, HasSubstr("without key 0"));
}

TEST(AttentionSnapshot, ASinkInTheMiddleIsTakenOutByItsOwnNumber) {
  AttentionRequest request = one_head(2, 0);
  request.view = AttentionView::sink_removed;
  request.sink_key = 1;
  const auto map = read_attention(capture_of(kT), request).map;
  EXPECT_TRUE(std::isnan(map.at(3, 1)));
  EXPECT_NEAR(map.at(3, 0), 0.4 / (0.4 + 0.4), 1e-6);
  request.sink_key = kT;
  EXPECT_THROW(read_attention(capture_of(kT), request), Error);
}

TEST(AttentionSnapshot, ASlidingWindowHidesWhatIsTooFarBack) {
  auto capture = capture_of(kT);
  capture.put("run0", "attention/visible", {kA, kT}, {2, 2, 2, 2, 1, 2, 2, 2, 2, 1});
  const auto map = read_attention(capture, one_head(0, 0)).map;
  EXPECT_EQ(map.span(0), (CellSpan{0, 1}));
  EXPECT_EQ(map.span(3), (CellSpan{2, 4}));
}

TEST(AttentionSnapshot, AnEncodersRowsReachToTheLastKey) {
  test::FakeCapture capture = capture_of(kT);
  capture.put("run0", "attention/visible", {kA, kT}, std::vector<double>(kA * kT, kT));
  const Grid map = read_attention(capture, one_head(0, 1)).map;
  for (int row = 0; row < kT; ++row) EXPECT_EQ(map.span(row), (CellSpan{0, kT})) << row;
  // The preview of an edited head knows causal rows only, and says so.
  EXPECT_THROW(read_head_input(capture, "run0", 0, 1), Error);
}

TEST(AttentionSnapshot, LongRunsWithoutMapsShowTheThumbnailAndSaySo) {
  constexpr int kLong = 70, kB = 64;
  auto capture = capture_of(kLong);
  capture.put("run0", "attention/thumbnail", {kA, kH, kB, kB},
              std::vector<double>(std::size_t{kA} * kH * kB * kB, 0.25));
  const auto whole = read_attention(capture, one_head(0, 1));
  EXPECT_EQ(whole.source, AttentionSource::thumbnail);
  EXPECT_THAT(whole.source_text, HasSubstr("largest probability of each cell"));
  EXPECT_EQ(whole.cell_size, 2);
  // bin(i) = floor(i·64/70): bin 1 begins at position 2, bin 63 at 69.
  EXPECT_EQ(whole.keys[1], 2);
  EXPECT_EQ(whole.keys[63], 69);
  EXPECT_EQ(whole.map.span(5), (CellSpan{0, 6}));

  AttentionRequest removed = one_head(0, 1);
  removed.view = AttentionView::sink_removed;
  EXPECT_EQ(read_attention(capture, removed).source_text, "first 64 of 70 tokens, exact");
  removed.source = AttentionSource::thumbnail;
  EXPECT_THROW(read_attention(capture, removed), Error);
}

TEST(AttentionSnapshot, HugeMapsArePooledWhileTheyAreRead) {
  constexpr int kHuge = kMaxMapSide + 2;
  test::FakeCapture capture = capture_of(3);
  RunInput input;
  input.token_ids.assign(kHuge, 1);
  test::FakeCapture huge;
  huge.facts = capture.facts;
  huge.add_run("run0", input);
  // Three recorded queries, the last of the run among them.
  std::vector<double> values(3 * std::size_t{kHuge}, 0.0);
  values[2 * std::size_t{kHuge} + 4001] = 0.75;
  huge.put("run0", "attention/layers", {1}, {1});
  huge.put("run0", "attention/pattern", {1, 1, 3, kHuge}, values);
  huge.put("run0", "attention/pattern_layers", {1}, {1});
  huge.put("run0", "attention/pattern_heads", {1}, {0});
  huge.put("run0", "attention/pattern_rows", {3}, {0, 1, kHuge - 1});
  std::vector<double> visible;
  for (int key = 0; key < kHuge; ++key) visible.push_back(kHuge - key);
  huge.put("run0", "attention/visible", {1, kHuge}, visible);
  huge.put("run0", "attention/key_mass", {1, kH, kHuge}, std::vector<double>(3 * kHuge, 0.5));
  const auto snapshot = read_attention(huge, one_head(1, 0));
  EXPECT_EQ(snapshot.cell_size, 2);
  EXPECT_EQ(snapshot.map.rows(), 2);
  EXPECT_EQ(snapshot.map.cols(), kHuge / 2);
  EXPECT_FLOAT_EQ(static_cast<float>(snapshot.map.at(1, 2000)), 0.75F);
  EXPECT_EQ(snapshot.map.at(1, 2001), 0);
  EXPECT_THAT(snapshot.source_text, HasSubstr("largest of each 2 × 2"));
  EXPECT_EQ(snapshot.map.span(0), (CellSpan{0, 1})) << "queries 0 and 1 see keys 0 and 1";
}

TEST(AttentionSnapshot, SaysWhatIsNotThere) {
  const auto capture = capture_of(kT);
  EXPECT_THROW(read_attention(capture, one_head(1, 0)), Error)
      << "layer 1 has no softmax attention";
  EXPECT_THROW(read_attention(capture, one_head(0, kH)), Error);
  AttentionRequest request = one_head(0, 0);
  request.source = AttentionSource::pattern;
  EXPECT_THROW(read_attention(capture, request), Error);
  request = one_head(0, 0);
  request.heads = {0, 1};
  EXPECT_THROW(read_attention(capture, request), Error) << "single means one head";
}

TEST(ThumbnailSnapshot, HoldsEveryHeadOfEveryLayerAndItsScore) {
  auto capture = capture_of(kT);
  std::vector<double> values;
  for (const float p : maps(kT)) values.push_back(p);
  capture.put("run0", "attention/thumbnail", {kA, kH, kT, kT}, values);
  const auto snapshot = read_thumbnails(capture, {"run0"});
  EXPECT_THAT(snapshot.layers, ElementsAre(0, 2));
  EXPECT_EQ(snapshot.side, kT);
  EXPECT_FLOAT_EQ(static_cast<float>(snapshot.map(1, 2).at(3, 0)), 0.6F);
  EXPECT_FALSE(snapshot.map(1, 2).exists(0, 1));
  EXPECT_EQ(snapshot.scores.rows(), kA);
  EXPECT_EQ(snapshot.scores.cols(), kH);
  EXPECT_NEAR(snapshot.scores.at(1, 2), (1 + 4 * 0.6) / 5, 1e-6);
  EXPECT_THROW(read_thumbnails(capture_of(kT), {"run0"}), Error);
}

}  // namespace
}  // namespace sinkscope
