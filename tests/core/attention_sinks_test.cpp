// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/attention_sinks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/error.h"
#include "tests/core/planted_capture.h"

namespace sinkscope {
namespace {

using test::FakeCapture;
using test::Planted;
constexpr int kAll = std::numeric_limits<int>::max();

// Mean of 1/1 … 1/12: what an even causal head of 12 tokens gives to key 0.
double even_score() {
  double sum = 0;
  for (int q = 1; q <= Planted::n_tokens; ++q) sum += 1.0 / q;
  return sum / Planted::n_tokens;
}

AttentionSinks sinks_of(const FakeCapture& capture, const SinkOptions& options = {},
                        int layers_end = kAll) {
  return attention_sinks(capture, "run0", capture.input("run0"), options, layers_end);
}

FakeCapture planted() {
  FakeCapture capture;
  test::add_planted_run(capture, "run0", false);
  return capture;
}

// One layer, one head, T tokens that attend to themselves only.
FakeCapture identity_map(int seq_len) {
  FakeCapture capture;
  RunInput input;
  input.token_ids.assign(static_cast<std::size_t>(seq_len), 3);
  capture.add_run("run0", input);
  std::vector<float> map;
  for (int q = 0; q < seq_len; ++q) {
    for (int k = 0; k < seq_len; ++k) map.push_back(q == k ? 1.0F : 0.0F);
  }
  test::put_attention(capture, "run0", {5}, 1, map);
  return capture;
}

TEST(AttentionSinks, FindThePlantedTokenByName) {
  const AttentionSinks a = sinks_of(planted());
  ASSERT_EQ(a.sink_tokens.size(), 1U);
  const SinkToken& t = a.sink_tokens[0];
  EXPECT_EQ(t.token, 0);
  EXPECT_EQ(t.text, "<s>");
  EXPECT_TRUE(t.special);
  EXPECT_EQ(t.heads, 1);
  EXPECT_NEAR(t.max_score, 1, 1e-6);
  EXPECT_NEAR(t.mean_score, (5 * even_score() + 1) / 6, 1e-6);
  EXPECT_EQ(t.layer, Planted::sink_layer);
  EXPECT_EQ(t.head, Planted::sink_head);
}

TEST(AttentionSinks, ScoresAreLayerByHead) {
  const AttentionSinks a = sinks_of(planted());
  ASSERT_EQ(a.gu.score.rows(), 2);
  ASSERT_EQ(a.gu.score.cols(), 3);
  EXPECT_NEAR(a.gu.score(1, 2), 1, 1e-6);
  EXPECT_NEAR(a.gu.score(0, 2), even_score(), 1e-6);
  EXPECT_NEAR(a.with_row0(1, 0), even_score(), 1e-6);
  EXPECT_NEAR(a.without_row0(1, 0), (12 * even_score() - 1) / 11, 1e-6);
  EXPECT_NEAR(a.without_row0(1, 2), 1, 1e-6);
  EXPECT_NEAR(a.mean_map.with_row0, (5 * even_score() + 1) / 6, 1e-6);
  EXPECT_EQ(a.gu.sink_ratio.above, 1);
  EXPECT_EQ(a.gu.sink_ratio.cells, 6);
  EXPECT_EQ(a.gu.layers.at(1).max_head, 2);
  EXPECT_EQ(a.gu.queries, 12);
}

TEST(AttentionSinks, OtherKeysAreScoredToo) {
  const AttentionSinks a = sinks_of(planted(), {.gu_key = 1});
  EXPECT_NEAR(a.gu.score(0, 1), (12 * even_score() - 1) / 11, 1e-6);
  EXPECT_NEAR(a.gu.score(1, 2), 0, 1e-6);
}

// Query 0 of an encoder spreads its mass, and every query of a cut sees every key.
TEST(AttentionSinks, OfAnEncoderEveryQueryCountsForEveryKey) {
  FakeCapture capture;
  RunInput input;
  input.token_ids = {3, 4, 5};
  capture.add_run("run0", input);
  test::put_attention(capture, "run0", {0}, 1, {.5F, .3F, .2F, .4F, .4F, .2F, .3F, .3F, .4F});
  capture.put("run0", "attention/key_mass", {1, 1, 3}, {1.2, 1.0, .8});
  capture.put("run0", "attention/visible", {1, 3}, {3, 3, 3});
  capture.put("run0", "attention/null_mass", {1, 1, 3}, {0, 0, 0});
  const AttentionSinks whole = sinks_of(capture, {.gu_key = 1});
  EXPECT_NEAR(whole.with_row0(0, 0), .4, 1e-6);
  EXPECT_NEAR(whole.without_row0(0, 0), .35, 1e-6);
  EXPECT_NEAR(whole.gu.score(0, 0), 1.0 / 3, 1e-6);
  EXPECT_NEAR(sinks_of(capture, {.gu_length = 2}).gu.score(0, 0), .45, 1e-6);
  EXPECT_NEAR(sinks_of(capture, {.gu_key = 1, .gu_length = 2}).gu.score(0, 0), .35, 1e-6);
}

TEST(AttentionSinks, CutToTheFirstPositionsAsPublished) {
  const AttentionSinks a = sinks_of(planted(), {.gu_length = 4});
  EXPECT_EQ(a.gu.queries, 4);
  EXPECT_NEAR(a.gu.score(0, 0), (1 + 1 / 2.0 + 1 / 3.0 + 1 / 4.0) / 4, 1e-6);
  // Longer than the run: the run.
  EXPECT_NEAR(sinks_of(planted(), {.gu_length = 64}).gu.score(0, 0), even_score(), 1e-6);
}

TEST(FieldCases, FC50_LastKeysAreNotReportedAsSinks) {
  const FakeCapture capture = identity_map(20);  // α_k = 1/(20 − k): above 0.3 from key 17 on
  EXPECT_TRUE(sinks_of(capture).sink_tokens.empty());
  EXPECT_EQ(sinks_of(capture).skipped_last_keys, 8);
  const auto all = sinks_of(capture, {.min_later_queries = 0}).sink_tokens;
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].token, 19);  // equal heads: the highest score first
  EXPECT_NEAR(all[0].max_score, 1, 1e-6);
  EXPECT_EQ(all[0].layer, 5);
}

TEST(FieldCases, FC38_RatiosDivideByTheLayersThatHaveAttention) {
  // Four blocks of which only the last has softmax attention: one layer, one head.
  FakeCapture capture = identity_map(20);
  capture.facts.n_layers = 4;
  EXPECT_EQ(sinks_of(capture).gu.sink_ratio.cells, 1);
}

TEST(FieldCases, FC38_HeadsThatALayerLacksAreNoCells) {
  FakeCapture capture = planted();
  std::vector<double> mass = capture.read_f64("run0", "attention/key_mass");
  for (int k = 0; k < Planted::n_tokens; ++k) {  // block 0 has two heads
    mass[static_cast<std::size_t>(2 * Planted::n_tokens + k)] = std::nan("");
  }
  capture.put("run0", "attention/key_mass", {2, 3, Planted::n_tokens}, mass);
  const AttentionSinks a = sinks_of(capture);
  EXPECT_EQ(a.gu.sink_ratio.cells, 5);
  EXPECT_NEAR(a.mean_map.with_row0, (4 * even_score() + 1) / 5, 1e-6);
}

TEST(AttentionSinks, WithoutAttentionEverythingIsEmpty) {
  FakeCapture capture;
  RunInput input;
  input.token_ids = {1, 2};
  capture.add_run("run0", input);
  const AttentionSinks a = sinks_of(capture);
  EXPECT_TRUE(a.layers.empty());
  EXPECT_TRUE(std::isnan(a.gu.sink_ratio.ratio));
}

TEST(AttentionSinks, BlocksThatAreNotYetRecordedAreLeftOut) {
  const AttentionSinks a = sinks_of(planted(), {}, 1);
  EXPECT_THAT(a.layers, ::testing::ElementsAre(0));
  EXPECT_EQ(a.gu.sink_ratio.cells, 3);
  EXPECT_TRUE(a.sink_tokens.empty());
}

TEST(AttentionSinks, OptionsThatTheRunCannotServeAreRefused) {
  const FakeCapture capture = planted();
  for (const SinkOptions& options :
       {SinkOptions{.gu_key = 12}, SinkOptions{.gu_key = 4, .gu_length = 4},
        SinkOptions{.gu_length = 65}, SinkOptions{.gu_length = 0}}) {
    try {
      sinks_of(capture, options);
      ADD_FAILURE() << "accepted";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::invalid_argument);
    }
  }
}

TEST(AttentionSinks, ShapesThatContradictEachOtherAreCorrupt) {
  FakeCapture capture = planted();
  capture.put("run0", "attention/visible", {2, 5}, std::vector<double>(10, 1.0));
  try {
    sinks_of(capture);
    FAIL() << "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::corrupt);
    EXPECT_THAT(e.what(),
                ::testing::HasSubstr("attention/visible: expected [2, 12], found [2, 5]"));
  }
}

}  // namespace
}  // namespace sinkscope
