// SPDX-License-Identifier: GPL-3.0-or-later
#include <gtest/gtest.h>

#include "core/draw/ticks.h"

namespace sinkscope {
namespace {

std::vector<std::string> labels(const std::vector<Tick>& ticks) {
  std::vector<std::string> texts;
  for (const Tick& tick : ticks) texts.push_back(tick.label);
  return texts;
}

using Texts = std::vector<std::string>;

TEST(Ticks, NiceValuesAreMultiplesWithinTheRange) {
  EXPECT_EQ(nice_values(0, 1, 6), (std::vector<double>{0, 0.2, 0.4, 0.6000000000000001, 0.8, 1}));
  EXPECT_EQ(nice_values(-3, 12, 4), (std::vector<double>{0, 5, 10}));
  EXPECT_TRUE(nice_values(1, 1, 5).empty());
  for (const double hi : {1e300, 1.7e308, 1e-300, 5e-324, 3.0})
    for (int at_most = 1; at_most < 9; ++at_most)
      EXPECT_LE(nice_values(-hi, hi, at_most).size(), static_cast<std::size_t>(at_most));
}

TEST(Ticks, OfALinearAxis) {
  const std::vector<Tick> ticks = value_ticks({0, 25000}, 6);
  EXPECT_EQ(labels(ticks), (Texts{"0", "5,000", "10,000", "15,000", "20,000", "25,000"}));
  EXPECT_DOUBLE_EQ(ticks[1].position, 0.2);
}

TEST(Ticks, OfALogAxisAreDecadesThatThinOut) {
  const ValueRange range{0.01, 100, Scale::log};
  EXPECT_EQ(labels(value_ticks(range, 6)), (Texts{"0.01", "0.1", "1", "10", "100"}));
  EXPECT_NEAR(value_ticks(range, 6)[2].position, 0.5, 1e-12);
  EXPECT_LE(value_ticks({1e-12, 1e12, Scale::log}, 5).size(), 5u);
  EXPECT_EQ(labels(value_ticks({0.5, 20, Scale::log}, 7)),
            (Texts{"0.5", "1", "2", "5", "10", "20"}));
  EXPECT_GE(value_ticks({0.9, 1.1, Scale::log}, 6).size(), 2u);
}

TEST(Ticks, OfASymlogAxisHaveBothSigns) {
  EXPECT_EQ(labels(value_ticks({-1000, 1000, Scale::symlog, 1}, 9)),
            (Texts{"-1,000", "-100", "-10", "-1", "0", "1", "10", "100", "1,000"}));
}

TEST(Ticks, CellsKeepTheirLabelsWhileTheViewMoves) {
  EXPECT_EQ(tick_cells(0, 31, 6), (std::vector<int>{0, 10, 20, 30}));
  EXPECT_EQ(tick_cells(13, 31, 6), (std::vector<int>{20, 30}));
  EXPECT_EQ(tick_cells(3, 6, 0.4), (std::vector<int>{3, 4, 5, 6}));
  EXPECT_EQ(tick_cells(0, 4095, 700), (std::vector<int>{0, 1000, 2000, 3000, 4000}));
}

TEST(Ticks, StarredCellsComeFirst) {
  EXPECT_EQ(tick_cells(0, 575, 90, {507, 100, 900}),
            (std::vector<int>{0, 100, 200, 300, 400, 507}));
}

TEST(Ticks, TextHasTheDecimalsOfTheStep) {
  EXPECT_EQ(tick_text(0.30000000000000004, 0.1), "0.3");
  EXPECT_EQ(tick_text(1, 0.05), "1.00");
  EXPECT_EQ(tick_text(-12345, 5), "-12,345");
  EXPECT_EQ(tick_text(-1e-12, 1), "0");
  EXPECT_EQ(tick_text(2e-5, 1e-5), "2e-05");
  EXPECT_EQ(tick_text(1e-6), "1e-06");
}

}  // namespace
}  // namespace sinkscope
