// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/residual_sinks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/core/planted_capture.h"

namespace sinkscope {
namespace {

using test::FakeCapture;
using test::Planted;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
constexpr int kAll = std::numeric_limits<int>::max();

ResidualReport report_of(const SinkOptions& options = {}, bool record_stream = true,
                         const std::vector<float>& stream = test::planted_stream()) {
  FakeCapture capture;
  test::add_planted_run(capture, "run0", record_stream, stream);
  return residual_sinks(capture, "run0", options, kAll).report;
}

const std::vector<double>& column(const ResidualReport& r, const std::string& flavor) {
  for (const auto& [name, values] : r.kurtosis) {
    if (name == flavor) return values;
  }
  throw std::runtime_error("no column " + flavor);
}

TEST(ResidualSinks, LargestValuePerSiteComesWithTokenAndDimension) {
  const ResidualReport r = report_of();
  EXPECT_THAT(r.sites, ElementsAre("blocks.0.hook_resid_pre", "blocks.0.hook_resid_mid",
                                   "blocks.0.hook_resid_post", "blocks.1.hook_resid_mid",
                                   "blocks.1.hook_resid_post"));
  EXPECT_EQ(r.max_abs.at(0), (Peak{51, 11, Planted::sink_dim}));
  EXPECT_EQ(r.max_abs.at(2), (Peak{5000, 0, Planted::massive_dim}));
  EXPECT_THAT(r.median_abs, Each(1.0));
}

TEST(ResidualSinks, MassiveActivationsAreFewTokensTimesFewDimensions) {
  const ResidualReport r = report_of();
  EXPECT_EQ(r.massive_mode, MassiveMode::absolute);
  ASSERT_EQ(r.massive.size(), 3U);
  EXPECT_EQ(r.massive[0].site, "blocks.0.hook_resid_post");
  EXPECT_EQ(r.massive[0].ratio, 5000);
  ASSERT_EQ(r.massive_groups.size(), 1U);
  EXPECT_EQ(r.massive_groups[0].dim, Planted::massive_dim);
  EXPECT_EQ(r.massive_groups[0].n_sites, 3);
  EXPECT_EQ(r.massive_groups[0].last_site, "blocks.1.hook_resid_post");
}

TEST(ResidualSinks, SmallModelsFallBackToTheRatio) {
  std::vector<float> stream = test::planted_stream();
  for (float& h : stream) h = std::abs(h) == 5000 ? 90 : h / 100;  // median 0.01
  const ResidualReport r = report_of({}, false, stream);
  EXPECT_EQ(r.massive_mode, MassiveMode::ratio);
  EXPECT_EQ(r.massive.size(), 3U);
  const ResidualReport strict =
      report_of({.massive = {.mode = MassiveMode::absolute}}, false, stream);
  EXPECT_TRUE(strict.massive.empty());
}

TEST(ResidualSinks, DetectionLeavesTheFirstTokenOut) {
  const ResidualReport r = report_of();
  EXPECT_THAT(r.m2, Each(46.0));  // 40 + mean of 1…11, against 1
  EXPECT_THAT(r.m2_dim, Each(Planted::sink_dim));
  EXPECT_THAT(r.argmax_hit, Each(1.0));
  ASSERT_EQ(r.sinks.size(), 1U);
  EXPECT_EQ(r.sinks[0].n_sites, 5);
  EXPECT_DOUBLE_EQ(r.sinks[0].mean, 46);
  EXPECT_NEAR(r.sinks[0].sd, std::sqrt(10), 1e-9);  // of 1…11
  EXPECT_TRUE(report_of({.min_m2 = 46.5}).sinks.empty());
}

TEST(FieldCases, FC52_SortedDimensionsWithAndWithoutTheFirstToken) {
  const ResidualReport r = report_of();
  EXPECT_THAT(r.sorted_dims, ElementsAre(4, 5, 0, 1, 2, 3, 6));
  EXPECT_THAT(r.sorted_dims_without_first, ElementsAre(5, 0, 1, 2, 3, 4, 6));
  EXPECT_THAT(report_of({.n_sorted_dims = 2}).sorted_dims, ElementsAre(4, 5));
}

TEST(FieldCases, FC42_AllLPlus1BlockStatesCountInTheSortedOrder) {
  // Dimension 4 is 1 in the first state and (5000 + 11)/12 in the two others; no resid_mid counts.
  const double dim4 = (1 + 2 * 5011.0 / 12) / 3, dim5 = (1 + 11 * 46.0) / 12;
  const ResidualReport r = report_of();
  EXPECT_NEAR(r.first_permille_ratio, 1000 * dim4 / (dim4 + dim5 + 5), 1e-9);
  EXPECT_NEAR(r.first_permille_ratio_without_first, 1000 * 46.0 / 52, 1e-9);
}

TEST(ResidualSinks, KurtosisIsThatOfTheFlatState) {
  const ResidualReport r = report_of();
  const std::vector<float> stream = test::planted_stream();
  const int n = Planted::n_tokens * Planted::width;
  for (int s = 0; s < 5; ++s) {
    const std::span<const float> state(stream.data() + s * n, static_cast<std::size_t>(n));
    const auto i = static_cast<std::size_t>(s);
    EXPECT_NEAR(column(r, "pearson_tensor")[i], kurtosis(state, KurtosisFlavor::pearson), 1e-9);
    EXPECT_NEAR(column(r, "excess_tensor")[i], kurtosis(state, KurtosisFlavor::excess), 1e-9);
    EXPECT_NEAR(column(r, "qualcomm_tensor")[i], kurtosis(state, KurtosisFlavor::qualcomm), 1e-9);
    EXPECT_NEAR(column(r, "uncentered_tensor")[i], kurtosis(state, KurtosisFlavor::uncentered),
                1e-9);
  }
  // One hot value among 12 in a channel: n − 2 + 1/(n − 1) at most.
  EXPECT_NEAR(column(r, "pearson_channel_max")[2], 12 - 2 + 1.0 / 11, 1e-2);
}

TEST(ResidualSinks, PerTokenKurtosisNeedsTheStream) {
  const ResidualReport r = report_of();
  const std::vector<float> stream = test::planted_stream();
  double sum = 0;
  for (int t = 0; t < Planted::n_tokens; ++t) {
    sum += kurtosis({stream.data() + t * Planted::width, Planted::width}, KurtosisFlavor::pearson);
  }
  EXPECT_NEAR(column(r, "pearson_token_mean")[0], sum / Planted::n_tokens, 1e-9);
  EXPECT_TRUE(r.has_outlier_features);
  EXPECT_THAT(r.outlier_features, ElementsAre(Planted::sink_dim));  // the other: 2 of 36 pairs

  const ResidualReport bare = report_of({}, false);
  EXPECT_FALSE(bare.has_outlier_features);
  EXPECT_THAT(bare.not_computed, Contains(::testing::Key("pearson_token_mean")));
  EXPECT_EQ(column(bare, "pearson_tensor"), column(r, "pearson_tensor"));
}

TEST(ResidualSinks, AtFirstOrRestRestrictsEveryResidualNumber) {
  const ResidualReport first = report_of({.at = PositionFilter::parse("first")});
  EXPECT_EQ(first.max_abs.at(0).value, 1);
  EXPECT_EQ(first.max_abs.at(4).value, 5000);
  EXPECT_EQ(first.m2.at(4), 5000);
  EXPECT_TRUE(first.sorted_dims_without_first.empty());
  const ResidualReport rest = report_of({.at = PositionFilter::parse("rest")});
  EXPECT_EQ(rest.max_abs.at(4), (Peak{51, 11, Planted::sink_dim}));
  EXPECT_TRUE(rest.massive.empty());
  EXPECT_EQ(rest.sorted_dims, rest.sorted_dims_without_first);
}

TEST(ResidualSinks, AtIdsTakesThesePositionsTheFirstIncluded) {
  // Token 0 has id 0, tokens 1 and 2 have ids 11 and 12.
  const ResidualReport r = report_of({.at = PositionFilter::parse("ids:0-12")});
  EXPECT_EQ(r.max_abs.at(0), (Peak{42, 2, Planted::sink_dim}));
  EXPECT_DOUBLE_EQ(r.m2.at(0), (1 + 41 + 42) / 3.0);
  EXPECT_EQ(r.m2_dim.at(4), Planted::massive_dim);
  EXPECT_THAT(r.not_computed, Contains(::testing::Key("outlier_tensors")));
}

TEST(ResidualSinks, OutlierTensorsAreFivePerBlockAndTheFinalNorm) {
  FakeCapture capture;
  test::add_planted_run(capture, "run0", false);
  const int n = Planted::n_tokens * Planted::width;
  std::vector<float> small(static_cast<std::size_t>(2 * n)),
      final_norm(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < small.size(); ++i) small[i] = i % 3 == 0 ? 2.0F : -1.0F;
  for (std::size_t i = 0; i < final_norm.size(); ++i) final_norm[i] = i % 2 == 0 ? 9.0F : -9.0F;
  for (const char* hook : {"hook_mlp_out", "ln2.hook_out", "hook_attn_out", "ln1.hook_out"}) {
    test::put_stats(capture, "run0", hook, {0, 1}, Planted::width, small, false);
  }
  test::put_stats(capture, "run0", "ln_final.hook_out", {-1}, Planted::width, final_norm, false);
  const OutlierTensors t = residual_sinks(capture, "run0", {}, kAll).report.outlier_tensors;
  ASSERT_EQ(t.names.size(), 5U * 2 + 1);
  EXPECT_EQ(t.names[0], "ln_final.hook_out");
  EXPECT_EQ(t.inf_norm[0], 9);
  EXPECT_EQ(t.names[1], "blocks.0.hook_resid_post");
  EXPECT_EQ(t.max_inf_norm, 5000);
  EXPECT_EQ(t.max_ffn_inf_norm, 2);
  double sum = 0;
  for (const double k : t.kurtosis) sum += k;
  EXPECT_NEAR(t.avg_kurtosis, sum / 11, 1e-12);
  const std::vector<float> first_small(small.begin(), small.begin() + n);
  EXPECT_NEAR(t.kurtosis[2], kurtosis(first_small, KurtosisFlavor::qualcomm), 1e-9);
}

TEST(ResidualSinks, PoolingWeighsRunsByTheirPositions) {
  FakeCapture capture;
  test::add_planted_run(capture, "run0", false);
  RunInput two;
  two.token_ids = {0, 1};
  capture.add_run("run1", two);
  std::vector<float> stream;  // dimension 2 is 12 on both tokens
  for (int i = 0; i < 5 * 2; ++i) stream.insert(stream.end(), {1, 1, 12, 1, 1, 1, 1});
  test::put_residual(capture, "run1", Planted::n_layers, Planted::width, stream, false);
  ResidualPool pool = residual_sinks(capture, "run0", {}, kAll).pool;
  add_to_pool(pool, residual_sinks(capture, "run1", {}, kAll).pool);
  const PartStats& state = pool.detection.at(0);
  EXPECT_DOUBLE_EQ(state.mean_abs[5], (11 * 46 + 1) / 12.0);
  EXPECT_DOUBLE_EQ(state.mean_abs[2], (11 * 1 + 12) / 12.0);
  EXPECT_EQ(pool.n_tokens, 14);
  EXPECT_DOUBLE_EQ(pool.h_avg[2], (12 * 1 + 2 * 12) / 14.0);
}

}  // namespace
}  // namespace sinkscope
