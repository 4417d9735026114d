// SPDX-License-Identifier: GPL-3.0-or-later
#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <random>

#include "core/draw/range_finder.h"

namespace sinkscope {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// Every way to ask.
std::vector<RangeRequest> requests() {
  std::vector<RangeRequest> all;
  for (const RangeMode mode : {RangeMode::min_max, RangeMode::percentile, RangeMode::mean_sd})
    for (const Scale scale : {Scale::linear, Scale::log, Scale::symlog}) {
      all.push_back({.mode = mode, .scale = scale});
      all.push_back({.mode = mode, .scale = scale, .center = scale == Scale::log ? 1.0 : 0.0});
    }
  all.push_back({RangeMode::fixed, -0.25, 3, Scale::linear, {}});
  all.push_back({RangeMode::fixed, 0.25, 3, Scale::symlog, {}});
  return all;
}

void expect_the_same(const std::vector<Grid>& grids) {
  const RangeFinder finder(grids);
  for (const RangeRequest& request : requests()) {
    const ValueRange wanted = find_range(grids, request), found = finder.range(request);
    EXPECT_EQ(found, wanted) << range_text(request) << " " << scale_text(request.scale) << ": "
                             << found.lo << ".." << found.hi << ", not " << wanted.lo << ".."
                             << wanted.hi << ", threshold " << found.threshold << ", not "
                             << wanted.threshold;
    const RangeSummary a = finder.summary(found), b = summarize(grids, wanted);
    EXPECT_EQ(a.finite, b.finite);
    EXPECT_EQ(a.below, b.below) << range_text(request);
    EXPECT_EQ(a.above, b.above) << range_text(request);
    EXPECT_EQ(a.nan, b.nan);
    EXPECT_EQ(a.plus_inf, b.plus_inf);
    EXPECT_EQ(a.minus_inf, b.minus_inf);
    ASSERT_EQ(a.highest.has_value(), b.highest.has_value());
    if (!a.highest) continue;
    EXPECT_EQ(a.highest->value, b.highest->value);
    EXPECT_EQ(a.highest->row, b.highest->row);
    EXPECT_EQ(a.lowest->col, b.lowest->col);
  }
}

// Normal values with zeros of both signs, denormals, NaN and infinities among them.
std::vector<float> mixed(std::size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float& value : values) value = normal(random);
  const float odd[] = {0, -0.0F, kNaN, kInf, -kInf, 1e-42F, -1e-42F, 7200};
  for (std::size_t i = 0; i < n / 7; ++i) values[i * 5 % n] = odd[i % std::size(odd)];
  return values;
}

TEST(RangeFinder, FindsWhatPassesOverTheCellsFind) {
  expect_the_same({Grid(9, 31, mixed(9 * 31, 1))});
  expect_the_same({Grid(6, 9, mixed(54, 2)), Grid(4, 5, mixed(20, 3))});
  const Grid causal = Grid(40, 40, mixed(1600, 4)).with_spans(causal_spans(40, 40));
  expect_the_same({causal});
}

TEST(RangeFinder, OfDoublesAsWell) {
  const std::vector<float> floats = mixed(17 * 11, 5);
  std::vector<double> doubles(floats.begin(), floats.end());
  doubles[7] = 1e300;
  expect_the_same({Grid(17, 11, doubles)});
  expect_the_same({Grid(17, 11, doubles), Grid(17, 11, floats)});
}

TEST(RangeFinder, OfSpecialGrids) {
  expect_the_same({Grid(2, 3, std::vector<float>(6, 0.0F))});
  expect_the_same({Grid(2, 3, std::vector<float>(6, -4.0F))});
  expect_the_same({Grid(2, 3, std::vector<float>(6, kNaN))});
  expect_the_same({Grid(1, 1, std::vector<float>{3})});
  expect_the_same({Grid(2, 2, std::vector<float>{kNaN, kInf, -kInf, 1})});
  expect_the_same({Grid()});
  EXPECT_EQ(RangeFinder().range({}), find_range(std::span<const Grid>(), {}));
}

TEST(RangeFinder, CountsOfALargeMapAreExactAndItsHistogramIsClose) {
  std::vector<float> values = mixed(700 * 800, 6);
  const Grid grid(700, 800, values);
  ASSERT_GT(grid.size(), RangeFinder::kExactCells);
  expect_the_same({grid});
  const RangeFinder finder({grid});
  // A bound that is no float: the neighbors decide.
  const ValueRange odd{-0.1, 0.3};
  EXPECT_EQ(finder.summary(odd).below, summarize({&grid, 1}, odd).below);
  const ValueRange range{-3, 3};
  const auto close = finder.summary(range, 32).histogram;
  const auto exact = summarize({&grid, 1}, range, 32).histogram;
  for (std::size_t i = 0; i < exact.size(); ++i)
    EXPECT_NEAR(static_cast<double>(close[i]), static_cast<double>(exact[i]),
                0.15 * static_cast<double>(exact[i]) + 60)
        << i;
}

}  // namespace
}  // namespace sinkscope
