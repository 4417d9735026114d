// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kurtosis.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

namespace sinkscope {
namespace {

using Flavor = KurtosisFlavor;

TEST(FieldCases, FC49_KurtosisFlavorsOfSevenZerosAndAnEight) {
  const std::vector<float> x = {0, 0, 0, 0, 0, 0, 0, 8};
  EXPECT_NEAR(kurtosis(x, Flavor::pearson), 6.142857, 5e-7);
  EXPECT_NEAR(kurtosis(x, Flavor::excess), 3.142857, 5e-7);
  EXPECT_NEAR(kurtosis(x, Flavor::qualcomm), 4.703125, 5e-7);
  EXPECT_NEAR(kurtosis(x, Flavor::uncentered), 8.0, 1e-12);
  EXPECT_STREQ(to_string(Flavor::uncentered), "uncentered");
}

TEST(Kurtosis, OfOneToEightInQualcommsFlavor) {
  std::vector<float> x(8);
  std::iota(x.begin(), x.end(), 1.0F);
  EXPECT_NEAR(kurtosis(x, Flavor::qualcomm), 1.348958, 5e-7);
}

TEST(Kurtosis, OfOneHundredAmongPlusMinusOnes) {
  std::vector<float> x;
  for (int i = 0; i < 1023; ++i) x.push_back(i % 2 == 0 ? 1.0F : -1.0F);
  x.push_back(100);
  EXPECT_NEAR(kurtosis(x, Flavor::qualcomm), 839.32, 0.005);
}

TEST(Kurtosis, OfAOneHotVectorIsBoundedByItsLength) {
  std::vector<float> x(4096, 0.0F);
  x[1234] = 1;
  EXPECT_NEAR(kurtosis(x, Flavor::qualcomm, 0), 4092.00, 0.005);
  // s = 1/64 here: the published epsilon hides 94 % of it.
  EXPECT_LT(kurtosis(x, Flavor::qualcomm), 0.06 * 4092);
}

TEST(Kurtosis, UncenteredSeesTheMean) {
  const std::vector<float> x = {3, 5, 4, 8};
  double second = 0, fourth = 0;
  for (const float v : x) {
    second += std::pow(v, 2) / 4;
    fourth += std::pow(v, 4) / 4;
  }
  EXPECT_NEAR(kurtosis(x, Flavor::uncentered), fourth / (second * second), 1e-12);
}

TEST(Kurtosis, DoesNotExistWithoutSpread) {
  const std::vector<float> x = {2, 2, 2};
  EXPECT_TRUE(std::isnan(kurtosis(x, Flavor::pearson)));
  EXPECT_TRUE(std::isnan(kurtosis(x, Flavor::qualcomm, 0)));
  EXPECT_EQ(kurtosis(x, Flavor::qualcomm), 0);  // 0 / (0 + eps), as published
  EXPECT_TRUE(std::isnan(kurtosis(Moments{}, Flavor::uncentered)));
}

}  // namespace
}  // namespace sinkscope
