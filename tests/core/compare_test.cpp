// SPDX-License-Identifier: GPL-3.0-or-later
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/compare/array_difference.h"
#include "core/compare/comparison.h"
#include "core/site_name.h"
#include "tests/support/fake_capture.h"

namespace sinkscope {
namespace {

using test::FakeCapture;
using ::testing::ElementsAre;
using ::testing::Pair;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

RunInput input_of(int n_tokens) {
  RunInput input;
  for (int t = 0; t < n_tokens; ++t) input.token_ids.push_back(t + 3);
  return input;
}

std::vector<SiteDifference> differences(const FakeCapture& a, const FakeCapture& b,
                                        const std::string& path, std::int64_t tile = 1 << 20,
                                        int layers_end = kAllLayers) {
  const ComparedRun left{&a, "run0"}, right{&b, "run0"};
  return array_differences(left, right, path, common_axes(left, right, path, layers_end), tile);
}

// A stream of 2 blocks without mid, [3, T, 4], value 100·site + 10·token + dim.
FakeCapture with_stream(int n_tokens, const std::vector<std::string>& sites) {
  FakeCapture capture;
  capture.add_run("run0", input_of(n_tokens));
  capture.put_texts("run0", "residual/sites", sites);
  std::vector<double> values;
  for (std::size_t s = 0; s < sites.size(); ++s)
    for (int t = 0; t < n_tokens; ++t)
      for (int d = 0; d < 4; ++d)
        values.push_back(100 * SiteName::parse(sites[s]).layer + 10 * t + d);
  capture.put("run0", "residual/stream", {static_cast<std::int64_t>(sites.size()), n_tokens, 4},
              values);
  return capture;
}

TEST(ArrayDifference, NamesTheSiteTokenAndDimensionOfTheLargest) {
  const std::vector<std::string> sites = {"blocks.0.hook_resid_pre", "blocks.0.hook_resid_post",
                                          "blocks.1.hook_resid_post"};
  const FakeCapture a = with_stream(5, sites);
  FakeCapture b = with_stream(5, sites);
  std::vector<double> values = b.read_f64("run0", "residual/stream");
  values[2 * 20 + 3 * 4 + 1] += 0.5;  // site 2, token 3, dim 1: 131 there
  values[2 * 20 + 4 * 4 + 2] -= 0.25;
  b.put("run0", "residual/stream", {3, 5, 4}, values);
  const auto found = differences(a, b, "residual/stream");
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[1].n_unequal, 0);
  EXPECT_EQ(found[1].largest, 0);
  const SiteDifference& last = found[2];
  EXPECT_EQ(last.site, "blocks.1.hook_resid_post");
  EXPECT_EQ(last.layer, 1);
  EXPECT_EQ(last.n_compared, 20);
  EXPECT_EQ(last.n_unequal, 2);
  EXPECT_EQ(last.largest, 0.5);
  EXPECT_EQ(last.value_a, 131);
  EXPECT_EQ(last.value_b, 131.5);
  EXPECT_THAT(last.place, ElementsAre(Pair("token", 3), Pair("dim", 1)));
  EXPECT_DOUBLE_EQ(last.scaled, 0.5 / 131.5);
  EXPECT_DOUBLE_EQ(last.rms(), std::sqrt((0.25 + 0.0625) / 20));
  EXPECT_EQ(last.low, 100);
  EXPECT_EQ(last.high, 143);
}

TEST(ArrayDifference, SitesAreMatchedByNameAndPositionsAsFarAsBothGo) {
  const FakeCapture a = with_stream(
      6, {"blocks.0.hook_resid_pre", "blocks.1.hook_resid_post", "blocks.2.hook_resid_post"});
  const FakeCapture b = with_stream(4, {"blocks.2.hook_resid_post", "blocks.0.hook_resid_pre"});
  const auto found = differences(a, b, "residual/stream");
  ASSERT_EQ(found.size(), 2u);
  for (const SiteDifference& site : found) {
    EXPECT_EQ(site.n_unequal, 0) << site.site;
    EXPECT_EQ(site.n_compared, 16);
    EXPECT_FALSE(site.is_whole);
  }
  EXPECT_EQ(found[1].site, "blocks.2.hook_resid_post");
}

// Maps of layers, heads and rows: 1000·layer + 100·head + 10·row + key.
FakeCapture with_maps(const std::vector<double>& layers, const std::vector<double>& heads,
                      const std::vector<double>& rows, int n_tokens) {
  FakeCapture capture;
  capture.add_run("run0", input_of(n_tokens));
  const auto n = [](const std::vector<double>& list) {
    return static_cast<std::int64_t>(list.size());
  };
  capture.put("run0", "attention/pattern_layers", {n(layers)}, layers);
  capture.put("run0", "attention/pattern_heads", {n(heads)}, heads);
  capture.put("run0", "attention/pattern_rows", {n(rows)}, rows);
  std::vector<double> values;
  for (const double layer : layers)
    for (const double head : heads)
      for (const double row : rows)
        for (int key = 0; key < n_tokens; ++key)
          values.push_back(1000 * layer + 100 * head + 10 * row + key);
  capture.put("run0", "attention/pattern", {n(layers), n(heads), n(rows), n_tokens}, values);
  return capture;
}

TEST(ArrayDifference, MapsAreMatchedByBlockHeadAndRowInTilesOfAnySize) {
  const FakeCapture a = with_maps({0, 2, 3}, {0, 2, 3}, {1, 4, 5, 6, 8}, 9);
  FakeCapture b = with_maps({2, 3, 5}, {2, 3, 7}, {0, 4, 5, 8}, 9);
  std::vector<double> values = b.read_f64("run0", "attention/pattern");
  values[((1 * 3 + 0) * 4 + 2) * 9 + 6] += 7;  // layer 3, head 2, row 5, key 6
  b.put("run0", "attention/pattern", {3, 3, 4, 9}, values);
  for (const std::int64_t tile : {1, 2, 9, 10, 25, 1000}) {
    const auto found = differences(a, b, "attention/pattern", tile);
    ASSERT_EQ(found.size(), 2u) << tile;
    EXPECT_EQ(found[0].site, "blocks.2.attn.hook_pattern");
    EXPECT_EQ(found[0].n_unequal, 0) << tile;
    EXPECT_EQ(found[0].n_compared, 2 * 3 * 9) << tile;  // heads 2 3, rows 4 5 8
    EXPECT_EQ(found[1].n_unequal, 1) << tile;
    EXPECT_EQ(found[1].value_a, 3256);
    EXPECT_EQ(found[1].largest, 7);
    EXPECT_THAT(found[1].place, ElementsAre(Pair("head", 2), Pair("query", 5), Pair("key", 6)))
        << tile;
  }
}

TEST(ArrayDifference, WhatIsFiniteInOneOnlyIsCountedApart) {
  FakeCapture a, b;
  for (FakeCapture* capture : {&a, &b}) capture->add_run("run0", input_of(7));
  a.put("run0", "logits/loss", {6}, {1, kNaN, kInf, kInf, 2, kNaN});
  b.put("run0", "logits/loss", {6}, {1, kNaN, kInf, -kInf, kNaN, 3});
  const auto found = differences(a, b, "logits/loss");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].site, "logits/loss");
  EXPECT_EQ(found[0].layer, -1);
  EXPECT_EQ(found[0].n_compared, 1);
  EXPECT_EQ(found[0].n_non_finite, 3);
  EXPECT_EQ(found[0].low, 1);
  EXPECT_EQ(found[0].high, 3);
}

TEST(ArrayDifference, OfARecordingThatIsNotCompleteOnlyWholeBlocksCount) {
  const auto with_stats = [](double after) {
    FakeCapture capture;
    capture.add_run("run0", input_of(2));
    capture.put("run0", "stats/hook_mlp_out/layers", {3}, {0, 1, 2});
    capture.put("run0", "stats/hook_mlp_out/dim_rest/mean", {3, 2}, {1, 1, 1, 1, after, after});
    capture.put("run0", "stats/ln_final.hook_out/layers", {1}, {-1});
    capture.put("run0", "stats/ln_final.hook_out/dim_rest/mean", {1, 2}, {after, after});
    return capture;
  };
  const FakeCapture a = with_stats(1), b = with_stats(kNaN);
  const std::string mlp = "stats/hook_mlp_out/dim_rest/mean",
                    last = "stats/ln_final.hook_out/dim_rest/mean";
  EXPECT_EQ(differences(a, b, mlp, 100, 2).size(), 2u);
  EXPECT_EQ(differences(a, b, last, 100, 2).size(), 0u);
  EXPECT_EQ(differences(a, b, mlp).size(), 3u);
  ASSERT_EQ(differences(a, b, last).size(), 1u);
  EXPECT_EQ(differences(a, b, mlp)[1].site, "blocks.1.hook_mlp_out dim_rest/mean");
  EXPECT_EQ(differences(a, b, last)[0].n_non_finite, 2);
}

TEST(Verdict, IsMixedAbsoluteAndRelativeAndLeavesSumsOfPowersOut) {
  Comparison comparison;
  RunComparison run;
  SiteDifference stream, sum;
  stream.site = stream.dataset = "residual/stream";
  stream.n_compared = sum.n_compared = 10;
  stream.scaled = 0.002;
  sum.dataset = "stats/hook_mlp_out/dim_rest/m3";
  sum.scaled = 0.5;
  run.sites = {stream, sum};
  comparison.runs = {run};
  EXPECT_TRUE(judge({comparison}, 0.002).is_within);
  EXPECT_FALSE(judge({comparison}, 0.0019).is_within);
  EXPECT_THAT(judge({comparison}, 0.0019).reasons.front(), ::testing::HasSubstr("residual/stream"));
  const RunComparison good = comparison.runs.front();
  const auto is_within = [&](const RunComparison& changed) {
    comparison.runs = {changed};
    return judge({comparison}, 1).is_within;
  };
  EXPECT_TRUE(is_within(good));
  for (auto list : {&RunComparison::only_a, &RunComparison::only_b, &RunComparison::in_part}) {
    RunComparison lacking = good;
    (lacking.*list).emplace_back("attention/pattern");
    EXPECT_FALSE(is_within(lacking));
  }
  RunComparison counted = good;
  counted.indices = {{"stats/hook_mlp_out/token/max_dim", 10, 3}};
  EXPECT_TRUE(is_within(counted));
  counted.indices.push_back({"attention/visible", 10, 1});
  EXPECT_FALSE(is_within(counted));
  comparison.runs = {good};
  comparison.runs.front().same_tokens = false;
  EXPECT_FALSE(judge({comparison}, 1).is_within);
  comparison.runs.clear();
  EXPECT_FALSE(judge({comparison}, 1).is_within);
}

}  // namespace
}  // namespace sinkscope
