// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/record/tap_stats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace sinkscope {
namespace {

std::vector<float> random_matrix(int rows, int cols, float mean, float deviation) {
  std::mt19937 random(11);
  std::normal_distribution<float> normal(mean, deviation);
  std::vector<float> x(static_cast<std::size_t>(rows * cols));
  for (float& v : x) v = normal(random);
  return x;
}

// E: a channel with mean 14,600 and deviation 1 keeps its digits where raw power sums lose them.
TEST(TapStats, KeepsDigitsOfALargeMean) {
  const int T = 700, D = 21;  // three tiles of rows, an odd rest of dimensions
  const std::vector<float> x = random_matrix(T, D, 14600, 1);
  const TapStats stats = tap_stats(x.data(), T, D, D);
  for (int d = 0; d < D; ++d) {
    long double mean = 0, m2 = 0, m3 = 0, m4 = 0;
    for (int t = 1; t < T; ++t) mean += x[static_cast<std::size_t>(t * D + d)];
    mean /= T - 1;
    for (int t = 1; t < T; ++t) {
      const long double e = x[static_cast<std::size_t>(t * D + d)] - mean;
      m2 += e * e;
      m3 += e * e * e;
      m4 += e * e * e * e;
    }
    const auto at = static_cast<std::size_t>(d);
    EXPECT_EQ(stats.rest.count[at], T - 1);
    EXPECT_NEAR(stats.rest.mean[at], static_cast<double>(mean), 1e-8);
    EXPECT_NEAR(stats.rest.m2[at] / static_cast<double>(m2), 1, 1e-10);
    EXPECT_NEAR(stats.rest.m3[at], static_cast<double>(m3), 1e-6 * T);
    EXPECT_NEAR(stats.rest.m4[at] / static_cast<double>(m4), 1, 1e-10);
  }
}

TEST(TapStats, FirstTokenIsApart) {
  const std::vector<float> x = {100, -2, 3, /**/ 1, -8, 2, /**/ 5, 4, -3, /**/ 3, 0, 1};
  const TapStats stats = tap_stats(x.data(), 4, 3, 3);
  EXPECT_EQ(stats.first.count[0], 1);
  EXPECT_EQ(stats.first.mean[0], 100);
  EXPECT_EQ(stats.first.m2[0], 0);
  EXPECT_EQ(stats.first.max_token[1], 0);
  EXPECT_EQ(stats.rest.mean[0], 3);
  EXPECT_EQ(stats.rest.m2[0], 8);
  EXPECT_EQ(stats.rest.mean_abs[1], 4);
  EXPECT_EQ(stats.rest.max_abs[1], 8);
  EXPECT_EQ(stats.rest.max_token[1], 1);
  EXPECT_EQ(stats.rest.max_token[2], 2);
  EXPECT_EQ(stats.first.argmax_count[0], 1);
  EXPECT_EQ(stats.rest.argmax_count[0], 2);
  EXPECT_EQ(stats.rest.argmax_count[1], 1);
  EXPECT_EQ(stats.token.max_dim[1], 1);
  EXPECT_NEAR(stats.token.rms[1], std::sqrt(69.0 / 3), 1e-12);
  EXPECT_NEAR(stats.token.r2[1], 64.0 / 69.0, 1e-12);
}

TEST(TapStats, CountsNanAndInfinityAndLeavesThemOut) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {1, 2, /**/ nan, 4, /**/ -3, inf, /**/ 5, -inf};
  const TapStats stats = tap_stats(x.data(), 4, 2, 2);
  EXPECT_EQ(stats.rest.count[0], 2);
  EXPECT_EQ(stats.rest.mean[0], 1);
  EXPECT_EQ(stats.rest.m2[0], 32);
  EXPECT_EQ(stats.rest.max_abs[0], 5);
  EXPECT_EQ(stats.rest.max_token[0], 3);
  EXPECT_EQ(stats.rest.count[1], 1);
  EXPECT_EQ(stats.rest.mean[1], 4);
  EXPECT_EQ(stats.token.n_nan[1], 1);
  EXPECT_EQ(stats.token.n_inf[2], 1);
  EXPECT_EQ(stats.token.max_dim[2], 0);
  EXPECT_EQ(stats.token.max_abs[3], 5);
}

TEST(TapStats, DoNotDependOnHowWorkIsSpread) {
  const int T = 300, D = 150;
  const std::vector<float> x = random_matrix(T, D, 0.5, 2);
  const TapStats one = tap_stats(x.data(), T, D, D);
  const ParallelFor pieces = [](std::int64_t n, std::int64_t, const RangeBody& body) {
    for (std::int64_t i = n; i-- > 0;) body(i, i + 1);
  };
  const TapStats many = tap_stats(x.data(), T, D, D, pieces);
  EXPECT_EQ(one.rest.m4, many.rest.m4);
  EXPECT_EQ(one.rest.max_token, many.rest.max_token);
  EXPECT_EQ(one.token.rms, many.token.rms);
}

TEST(MedianAbs, IsTheLowerMedianOfAllValues) {
  const std::vector<float> x = {-5, 1, 3, /**/ -2, 4, 0};  // |x| sorted: 0 1 2 3 4 5
  EXPECT_EQ(median_abs(x.data(), 2, 3, 3), 2);
  const std::vector<float> strided = {-5, 1, 99, 3, -2, 99};  // [2, 2] with stride 3: 1 2 3 5
  EXPECT_EQ(median_abs(strided.data(), 2, 2, 3), 2);
}

TEST(MedianAbs, IsExactWhereTheBracketOfASampleHoldsItAndWhereNot) {
  const int T = 300, D = 151;
  std::vector<float> normal = random_matrix(T, D, 0.5, 2);
  std::vector<float> sloped(normal.size()), lost = normal;
  for (std::size_t i = 0; i < sloped.size(); ++i)  // all that the sample, every 23rd, meets is 1
    sloped[i] = i % 23 == 0 ? 1.0f : -2.0f - static_cast<float>(i);
  for (std::size_t i = 0; i < lost.size(); ++i)
    if (i % 3 != 0) lost[i] = i % 3 == 1 ? NAN : -INFINITY;
  for (std::vector<float> x : {normal, sloped}) {
    const double found = median_abs(x.data(), T, D, D);
    for (float& v : x) v = std::fabs(v);
    std::sort(x.begin(), x.end());
    EXPECT_EQ(found, x[(x.size() - 1) / 2]);
  }
  EXPECT_EQ(median_abs(lost.data(), T, D, D), INFINITY);  // a third each: finite, infinite, NaN
}

}  // namespace
}  // namespace sinkscope
