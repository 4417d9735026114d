// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/residual_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace sinkscope {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(LowerMedian, IsTheElementBelowTheMiddle) {
  EXPECT_EQ(lower_median(std::vector<double>{5, 1, 9}), 5);
  EXPECT_EQ(lower_median(std::vector<double>{5, 1, 9, 7}), 5);  // not 6
  EXPECT_EQ(lower_median(std::vector<double>{kNaN, 1, 9, kNaN, 7}), 7);
  EXPECT_TRUE(std::isnan(lower_median({})));
}

TEST(InfinityNorm, IsTheLargestSizeWithoutItsSign) {
  EXPECT_EQ(infinity_norm(std::vector<float>{1, -7, 3}), 7);
  EXPECT_EQ(infinity_norm({}), 0);
}

TEST(MassiveActivation, NeedsBothTheSizeAndTheRatio) {
  const MassiveCriterion sun{.mode = MassiveMode::absolute};
  EXPECT_TRUE(is_massive(2000, {.median_abs = .2, .sd = 1}, sun));   // LLaMA2-7B
  EXPECT_FALSE(is_massive(100, {.median_abs = .01, .sd = 1}, sun));  // not above 100
  EXPECT_FALSE(is_massive(2000, {.median_abs = 2.01, .sd = 1}, sun));
  EXPECT_TRUE(is_massive(2000, {.median_abs = 2, .sd = 1}, sun));  // exactly 1000 times
  EXPECT_FALSE(is_massive(kNaN, {.median_abs = .2, .sd = 1}, sun));
}

TEST(MassiveActivation, FallsBackToTheRatioWhereNothingReaches100) {
  EXPECT_EQ(resolve_mode(MassiveMode::automatic, 70.2, 100), MassiveMode::ratio);
  EXPECT_EQ(resolve_mode(MassiveMode::automatic, 100.5, 100), MassiveMode::absolute);
  EXPECT_EQ(resolve_mode(MassiveMode::zscore, 70.2, 100), MassiveMode::zscore);
  const MassiveCriterion ratio{.mode = MassiveMode::ratio};
  EXPECT_TRUE(is_massive(70, {.median_abs = .05, .sd = 1}, ratio));
  EXPECT_FALSE(is_massive(70, {.median_abs = .08, .sd = 1}, ratio));
  const MassiveCriterion z{.mode = MassiveMode::zscore, .min_zscore = 20};
  EXPECT_TRUE(is_massive(70, {.median_abs = .08, .sd = 3.5}, z));
  EXPECT_FALSE(is_massive(70, {.median_abs = .08, .sd = 3.6}, z));
}

TEST(ResidualSink, M2ComparesTheLargestWithTheMedianDimension) {
  const std::vector<double> mean_abs = {.5, 2, 9, 1, .25, .75};  // sorted: .25 .5 .75 1 2 9
  const M2 m2 = m2_of(mean_abs);
  EXPECT_DOUBLE_EQ(m2.value, 9 / .75);  // element (6−1)//2
  EXPECT_EQ(m2.dim, 2);
  EXPECT_THAT(dims_above_median(mean_abs, 10), ElementsAre(2));
  EXPECT_THAT(dims_above_median(mean_abs, 2.5), ElementsAre(2, 1));
  EXPECT_THAT(dims_above_median(mean_abs, 13), IsEmpty());
  EXPECT_EQ(m2_of({}).dim, -1);
  EXPECT_TRUE(std::isnan(m2_of(std::vector<double>{kNaN, kNaN}).value));
}

TEST(ResidualSink, ArgmaxHitIsAShareOfTokens) {
  EXPECT_DOUBLE_EQ(argmax_hit(std::vector<double>{1, 0, 6, 1}, 2), .75);
  EXPECT_TRUE(std::isnan(argmax_hit(std::vector<double>{0, 0}, 1)));
  EXPECT_TRUE(std::isnan(argmax_hit({}, -1)));
}

TEST(FieldCases, FC52_OneTokensMassiveDimensionDoesNotWinTheDetectionOrder) {
  // |h|: dimension 3 is 1000 at token 0 only, dimension 5 is 10 at all 64 tokens.
  std::vector<double> with(8, 0.0), without(8, 0.0);
  with[3] = 1000.0 / 64;
  with[5] = without[5] = 10;
  EXPECT_EQ(with[3], 15.625);
  EXPECT_THAT(sorted_dims(with), ElementsAre(3, 5, 0, 1, 2, 4, 6, 7));  // ties keep index order
  EXPECT_THAT(sorted_dims(without), ElementsAre(5, 0, 1, 2, 3, 4, 6, 7));
}

TEST(SortedDims, PutNaNLast) {
  EXPECT_THAT(sorted_dims(std::vector<double>{1, kNaN, 3, 1}), ElementsAre(2, 0, 3, 1));
}

TEST(FirstPermille, CountsTheDimensionsOfThePapersModels) {
  const int widths[] = {4096, 2048, 2880, 7168};
  const int nearest[] = {4, 2, 3, 7}, up[] = {5, 3, 3, 8};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(first_permille_count(widths[i], PermilleRounding::nearest), nearest[i]);
    EXPECT_EQ(first_permille_count(widths[i], PermilleRounding::up), up[i]);
  }
  EXPECT_EQ(first_permille_count(32, PermilleRounding::nearest), 1);
}

TEST(FirstPermille, RatioIsInPerMille) {
  std::vector<double> mean_abs(1600, 1.0);
  mean_abs[700] = 11;
  mean_abs[90] = 6;
  EXPECT_NEAR(first_permille_ratio(mean_abs, PermilleRounding::nearest), 1000 * 17.0 / 1615, 1e-9);
  std::vector<double> narrow(1400, 1.0);
  narrow[3] = 101;
  EXPECT_NEAR(first_permille_ratio(narrow, PermilleRounding::nearest), 1000 * 101.0 / 1500, 1e-9);
  EXPECT_NEAR(first_permille_ratio(narrow, PermilleRounding::up), 1000 * 102.0 / 1500, 1e-9);
}

TEST(OutlierFeatures, NeedEnoughLayersAndEnoughPositions) {
  MatrixD hits(4, 3);  // 4 states, 50 positions each: 200 pairs, 6 % = 12
  hits << 12, 6, 4,    // dim 0: 1 of 4 states and 12 pairs
      0, 5, 3,         // dim 1: 11 pairs only
      0, 0, 3,         // dim 2: 3 states, 12 pairs
      0, 0, 2;
  EXPECT_THAT(outlier_features(hits, 50, {}), ElementsAre(0, 2));
  EXPECT_THAT(outlier_features(hits, 50, {.layer_share = .5}), ElementsAre(2));
  EXPECT_THAT(outlier_features(MatrixD::Zero(4, 3), 50, {.position_share = 0}), IsEmpty());
}

}  // namespace
}  // namespace sinkscope
