// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sink_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace sinkscope {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

MatrixF causal_map(const std::vector<std::vector<float>>& rows) {
  MatrixF map = MatrixF::Zero(std::ssize(rows), std::ssize(rows));
  for (std::size_t q = 0; q < rows.size(); ++q) {
    for (std::size_t k = 0; k < rows[q].size(); ++k) {
      map(static_cast<Eigen::Index>(q), static_cast<Eigen::Index>(k)) = rows[q][k];
    }
  }
  return map;
}

ConstMapF view(const MatrixF& map) { return {map.data(), map.rows(), map.cols()}; }

std::vector<double> scores_of(const std::vector<std::vector<float>>& rows) {
  const MatrixF map = causal_map(rows);
  const VectorD s = gu_scores(view(map));
  return {s.data(), s.data() + s.size()};
}

auto near(double expected) { return DoubleNear(expected, 5e-5); }

TEST(GuScores, OfThePublishedVector) {
  EXPECT_THAT(scores_of({{1}, {.8F, .2F}, {.7F, .1F, .2F}, {.6F, .1F, .1F, .2F}}),
              ElementsAre(near(.775), near(.13333), near(.15), near(.2)));
}

TEST(FieldCases, FC50_SinkScoreDividesByTheQueriesThatSeeTheKey) {
  const float third = 1.0F / 3;
  EXPECT_THAT(scores_of({{1}, {0, 1}, {0, 0, 1}, {0, 0, 0, 1}}),
              ElementsAre(near(.25), near(.33333), near(.5), near(1)));
  EXPECT_THAT(scores_of({{1}, {.5F, .5F}, {third, third, third}, {.25F, .25F, .25F, .25F}}),
              ElementsAre(near(.520833), near(.361111), near(.291667), near(.25)));
  EXPECT_THAT(scores_of({{1}, {1, 0}, {1, 0, 0}, {1, 0, 0, 0}}),
              ElementsAre(near(1), near(0), near(0), near(0)));
}

TEST(FieldCases, FC50_RatioComesWithTheNumberOfCells) {
  const std::vector<double> scores = {.9, .3, .31, std::nan(""), 0};
  const SinkRatio r = sink_ratio(scores, .3);
  EXPECT_EQ(r.above, 2);  // exactly epsilon is not above
  EXPECT_EQ(r.cells, 4);  // a head that does not exist is no cell
  EXPECT_DOUBLE_EQ(r.ratio, .5);
  EXPECT_TRUE(std::isnan(sink_ratio({}, .3).ratio));
}

TEST(FieldCases, FC51_OneStrongHeadOf32IsNotAveragedAway) {
  std::vector<double> heads(32, 0.01);
  heads[20] = 1.0;
  const HeadSummary s = summarize_heads(heads, .3);
  EXPECT_LT(s.mean, .05);
  EXPECT_EQ(s.max, 1.0);
  EXPECT_EQ(s.max_head, 20);
  EXPECT_DOUBLE_EQ(s.share_above, 1.0 / 32);
}

TEST(GuScores, FromColumnSumsEqualThoseFromTheMap) {
  const MatrixF map = causal_map({{1}, {.8F, .2F}, {.7F, .1F, .2F}, {.6F, .1F, .1F, .2F}});
  const std::vector<float> key_mass = {3.1F, .4F, .3F, .2F};
  const std::vector<int> visible = {4, 3, 2, 1};
  EXPECT_TRUE(gu_scores(key_mass, visible).isApprox(gu_scores(view(map)), 1e-6));
  EXPECT_TRUE(std::isnan(gu_scores(key_mass, std::vector<int>{0, 3, 2, 1})[0]));
}

TEST(GuScores, CutUseOnlyTheFirstRowsAndKeys) {
  const MatrixF map = causal_map({{1}, {.8F, .2F}, {.7F, .1F, .2F}, {.6F, .1F, .1F, .2F}});
  const std::vector<int> visible = {9, 8, 7, 6};  // of a longer run
  const VectorD cut = gu_scores_cut(view(map), visible, 3);
  ASSERT_EQ(cut.size(), 3);
  EXPECT_NEAR(cut[0], 2.5 / 3, 1e-6);
  EXPECT_NEAR(cut[1], .3 / 2, 1e-6);
  EXPECT_NEAR(cut[2], .2, 1e-6);
}

TEST(GuScores, CutOfASlidingWindowDivideByTheQueriesInsideIt) {
  // Two keys a query: key 0 is seen by queries 0 and 1 only.
  const MatrixF map = causal_map({{1}, {.5F, .5F}, {0, .5F, .5F}, {0, 0, .5F, .5F}});
  const std::vector<int> visible = {2, 2, 2, 1};
  const VectorD cut = gu_scores_cut(view(map), visible, 3);
  EXPECT_NEAR(cut[0], .75, 1e-6);
  EXPECT_NEAR(cut[1], .5, 1e-6);
  EXPECT_NEAR(cut[2], .5, 1e-6);
}

TEST(FirstTokenScore, WithoutRow0FollowsFromTheOneWithIt) {
  const MatrixF map = causal_map({{1}, {.8F, .2F}, {.7F, .1F, .2F}, {.6F, .1F, .1F, .2F}});
  const FirstTokenScore s = first_token_score(view(map));
  EXPECT_NEAR(s.with_row0, .775, 1e-6);
  EXPECT_NEAR(s.without_row0, .7, 1e-6);
  EXPECT_NEAR(s.without_row0, (4 * s.with_row0 - 1) / 3, 1e-6);
}

TEST(FirstTokenScore, OfANullRouteUsesTheMassThatRow0Kept) {
  // softmax1-like: every row gives half of its mass to the null route.
  const FirstTokenScore s = first_token_score(1.5, 1 - .5, 3);
  EXPECT_DOUBLE_EQ(s.with_row0, .5);
  EXPECT_DOUBLE_EQ(s.without_row0, .5);
}

TEST(FirstTokenScore, OfOneTokenHasNoOtherRows) {
  EXPECT_TRUE(std::isnan(first_token_score(1, 1, 1).without_row0));
}

}  // namespace
}  // namespace sinkscope
