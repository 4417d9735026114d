// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/site_stats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "core/error.h"
#include "core/kurtosis.h"
#include "tests/support/fake_capture.h"

namespace sinkscope {
namespace {

using test::FakeCapture;
constexpr int kLayers = 2, kTokens = 9, kWidth = 4, kSites = 2 * kLayers + 1;

std::vector<float> random_stream(unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.5F, 2);
  std::vector<float> x;
  for (int i = 0; i < kSites * kTokens * kWidth; ++i) x.push_back(normal(random));
  return x;
}

FakeCapture capture_of(const std::vector<float>& stream, bool record_stream) {
  FakeCapture capture;
  capture.facts.n_layers = kLayers;
  RunInput input;
  input.token_ids = {0, 7, 3, 8, 0, 9, 9, 2, 6};
  capture.add_run("run0", input);
  test::put_residual(capture, "run0", kLayers, kWidth, stream, record_stream);
  return capture;
}

std::vector<float> state_of(const std::vector<float>& stream, int site) {
  const auto begin = stream.begin() + std::ptrdiff_t{site} * kTokens * kWidth;
  return {begin, begin + kTokens * kWidth};
}

void expect_same(const PartStats& a, const PartStats& b) {
  ASSERT_EQ(a.width(), b.width());
  for (std::size_t d = 0; d < a.moments.size(); ++d) {
    ASSERT_EQ(a.moments[d].count, b.moments[d].count);
    EXPECT_EQ(a.max_token[d], b.max_token[d]);
    EXPECT_EQ(a.argmax_count[d], b.argmax_count[d]);
    if (a.moments[d].count == 0) continue;
    EXPECT_NEAR(a.mean_abs[d], b.mean_abs[d], 1e-12);
    EXPECT_EQ(a.max_abs[d], b.max_abs[d]);
    EXPECT_NEAR(a.moments[d].mean, b.moments[d].mean, 1e-12);
    EXPECT_NEAR(a.moments[d].m4, b.moments[d].m4, 1e-9 * (1 + b.moments[d].m4));
  }
}

TEST(SiteStats, TensorMomentsAreThoseOfTheFlatState) {
  const auto stream = random_stream(3);
  const FakeCapture capture = capture_of(stream, false);
  RunStats stats(capture, "run0", PositionFilter{});
  const SiteStats site = stats.site({"hook_resid_mid", 1});
  const Moments all = tensor_moments(join(site.first, site.rest));
  const std::vector<float> state = state_of(stream, 3);
  const Moments flat = moments_of(state);
  EXPECT_EQ(all.count, kTokens * kWidth);
  EXPECT_NEAR(all.mean, flat.mean, 1e-12);
  EXPECT_NEAR(kurtosis(all, KurtosisFlavor::pearson), kurtosis(flat, KurtosisFlavor::pearson),
              1e-10);
}

TEST(SiteStats, PeakIsTheLargestValueWithItsPlace) {
  auto stream = random_stream(4);
  stream[static_cast<std::size_t>((4 * kTokens + 6) * kWidth + 2)] = -321;
  const FakeCapture capture = capture_of(stream, false);
  RunStats stats(capture, "run0", PositionFilter{});
  const SiteStats site = stats.site({"hook_resid_post", 1});
  EXPECT_EQ(largest(join(site.first, site.rest)), (Peak{321, 6, 2}));
  EXPECT_EQ(site.token_peaks.at(6), (Peak{321, 6, 2}));
  EXPECT_EQ(largest(site.first).token, 0);
}

TEST(SiteStats, ReducingTheStreamGivesTheStoredStatistics) {
  const auto stream = random_stream(5);
  const FakeCapture capture = capture_of(stream, true);
  RunStats stored(capture, "run0", PositionFilter{});
  RunStats reduced(capture, "run0", PositionFilter::parse("ids:0-9"));  // every token
  const SiteName site{"hook_resid_post", 0};
  expect_same(reduced.site(site, 2).first, stored.site(site, 2).first);
  expect_same(reduced.site(site, 2).rest, stored.site(site, 2).rest);
}

TEST(SiteStats, PositionsByIdTakeOnlyTheseTokens) {
  const auto stream = random_stream(6);
  const FakeCapture capture = capture_of(stream, true);
  RunStats stats(capture, "run0", PositionFilter::parse("ids:7-9"));  // positions 1, 3, 5, 6
  const SiteStats site = stats.site({"hook_resid_pre", 0}, 0);
  PartStats expected(kWidth);
  for (const int t : {1, 3, 5, 6}) {
    expected.add_row(t, {stream.data() + t * kWidth, static_cast<std::size_t>(kWidth)});
  }
  expect_same(join(site.first, site.rest), expected);
  EXPECT_EQ(site.token_peaks.size(), 4U);
}

TEST(SiteStats, FirstAndRestDivideThePositions) {
  const FakeCapture capture = capture_of(random_stream(7), false);
  const SiteName site{"hook_resid_post", 1};
  RunStats all(capture, "run0", PositionFilter{});
  RunStats first(capture, "run0", PositionFilter::parse("first"));
  RunStats rest(capture, "run0", PositionFilter::parse("rest"));
  expect_same(join(first.site(site).first, rest.site(site).rest),
              join(all.site(site).first, all.site(site).rest));
  EXPECT_EQ(tensor_moments(first.site(site).rest).count, 0);
  EXPECT_EQ(tensor_moments(rest.site(site).first).count, 0);
  EXPECT_EQ(rest.site(site).token_peaks.size(), static_cast<std::size_t>(kTokens - 1));
}

TEST(SiteStats, PositionsByIdNeedTheStreamAndSaySo) {
  const FakeCapture capture = capture_of(random_stream(8), false);
  try {
    RunStats(capture, "run0", PositionFilter::parse("ids:1-2"));
    FAIL() << "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::invalid_argument);
    EXPECT_THAT(e.what(), ::testing::HasSubstr("--record stream"));
  }
}

TEST(SiteStats, AStrangersIndicesAreCheckedBeforeUse) {
  FakeCapture capture = capture_of(random_stream(9), false);
  capture.put("run0", "stats/hook_resid_post/dim_rest/max_token", {kLayers, kWidth},
              std::vector<double>(kLayers * kWidth, 4000.0));
  RunStats stats(capture, "run0", PositionFilter{});
  try {
    stats.site({"hook_resid_post", 0});
    FAIL() << "accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::corrupt);
    EXPECT_THAT(e.what(), ::testing::HasSubstr("stats/hook_resid_post/dim_rest/max_token"));
  }
}

// A stranger's file: what leads to a token or a dimension must lead to one that is there.
TEST(SiteStats, PlacesOfMaximaBeyondTheRunAreRefused) {
  const std::string group = "stats/hook_resid_post/";
  struct Case {
    const char* path;
    double value;
  };
  for (const Case& c : {Case{"dim_rest/max_token", kTokens}, Case{"dim_first/max_token", -2},
                        Case{"token/max_dim", kWidth}, Case{"token/max_dim", 2147483647}}) {
    FakeCapture capture = capture_of(random_stream(9), false);
    const auto dims = capture.dims("run0", group + c.path);
    std::vector<double> values = capture.read_f64("run0", group + c.path);
    values.back() = -1;  // nothing finite
    capture.put("run0", group + c.path, dims, values);
    RunStats(capture, "run0", PositionFilter{}).site({"hook_resid_post", 1});
    values.back() = c.value;
    capture.put("run0", group + c.path, dims, values);
    try {
      RunStats(capture, "run0", PositionFilter{}).site({"hook_resid_post", 1});
      ADD_FAILURE() << c.path << " taken with " << c.value;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::corrupt);
      EXPECT_THAT(error.what(), ::testing::HasSubstr(group + c.path + ": expected indices"));
    }
  }
}

TEST(PartStats, LeaveOutWhatIsNotFinite) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  PartStats part(3);
  part.add_row(0, std::vector<float>{nan, 2, -5});
  part.add_row(1, std::vector<float>{nan, inf, 1});
  EXPECT_EQ(part.moments[0].count, 0);
  EXPECT_TRUE(std::isnan(part.mean_abs[0]));
  EXPECT_EQ(part.moments[1].count, 1);
  EXPECT_EQ(part.max_abs[1], 2);
  EXPECT_DOUBLE_EQ(part.mean_abs[2], 3);
  EXPECT_EQ(largest(part), (Peak{5, 0, 2}));
  EXPECT_THAT(part.argmax_count, ::testing::ElementsAre(0, 0, 2));
}

}  // namespace
}  // namespace sinkscope
