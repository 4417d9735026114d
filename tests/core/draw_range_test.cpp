// SPDX-License-Identifier: GPL-3.0-or-later
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "core/draw/colormap.h"
#include "core/draw/order_statistics.h"
#include "core/draw/range_finder.h"
#include "core/draw/value_range.h"
#include "core/error.h"

namespace sinkscope {
namespace {

Grid row_of(std::vector<float> values) {
  const int n = static_cast<int>(values.size());
  return Grid(1, n, std::move(values));
}

void expect_usable(const ValueRange& range) {
  EXPECT_TRUE(std::isfinite(range.lo));
  EXPECT_TRUE(std::isfinite(range.hi));
  EXPECT_LT(range.lo, range.hi);
  EXPECT_NEAR(normalized(range.lo, range), 0, 1e-12);
  EXPECT_NEAR(normalized(range.hi, range), 1, 1e-12);
  if (range.scale == Scale::log) {
    EXPECT_GT(range.lo, 0);
  }
}

TEST(FindRange, PercentilesAreNearestRanks) {
  std::vector<float> values(1000);
  std::iota(values.begin(), values.end(), 1001.0F);
  std::shuffle(values.begin(), values.end(), std::mt19937(3));
  const ValueRange range = find_range(Grid(8, 125, values), {});
  EXPECT_EQ(range.lo, 1010);  // rank ⌈0.01 · 1000⌉
  EXPECT_EQ(range.hi, 1990);  // rank ⌈0.99 · 1000⌉
}

TEST(FindRange, ProbabilitiesStartAtZero) {
  std::vector<float> values(1000);
  std::iota(values.begin(), values.end(), 1.0F);
  EXPECT_EQ(find_range(Grid(8, 125, values), {}).lo, 0);
  EXPECT_EQ(find_range(Grid(8, 125, values), {.scale = Scale::log}).lo, 10);
  values[3] = -1e-3F;  // with signs both ends are percentiles
  EXPECT_EQ(find_range(Grid(8, 125, values), {}).lo, 10);
}

TEST(OrderStatistics, AreThoseOfASortedCopy) {
  std::mt19937 random(11);
  std::normal_distribution<double> normal;
  std::vector<double> wide;
  for (int i = 0; i < 777; ++i) wide.push_back(normal(random) * std::pow(10, normal(random) * 8));
  std::vector<float> narrow(wide.begin(), wide.end());
  const Grid f64(7, 111, wide), f32(7, 111, narrow);
  std::sort(wide.begin(), wide.end());
  std::sort(narrow.begin(), narrow.end());
  for (const double p : {0.0, 0.01, 0.25, 0.5, 0.99, 1.0}) {
    const auto rank = std::max<std::size_t>(1, std::ceil(p * 777));
    EXPECT_EQ(OrderStatistics({&f64, 1}, Counted::all).quantile(p), wide[rank - 1]) << p;
    EXPECT_EQ(OrderStatistics({&f32, 1}, Counted::all).quantile(p), narrow[rank - 1]) << p;
  }
  // Grids of different precision are counted together.
  const std::vector<Grid> both = {f32, f64};
  EXPECT_EQ(OrderStatistics(both, Counted::all).count(), 2 * 777);
}

TEST(OrderStatistics, CountOnlyWhatIsAskedFor) {
  const float inf = std::numeric_limits<float>::infinity();
  const Grid grid = row_of({-4, -0.0F, 0, 2, 3, inf, -inf, std::nanf("")});
  EXPECT_EQ(OrderStatistics({&grid, 1}, Counted::all).count(), 5);
  const OrderStatistics positive({&grid, 1}, Counted::positive);
  EXPECT_EQ(positive.count(), 2);
  EXPECT_EQ(positive.quantile(0), 2);
  const OrderStatistics sizes({&grid, 1}, Counted::nonzero_magnitude);
  EXPECT_EQ(sizes.count(), 3);
  EXPECT_EQ(sizes.quantile(1), 4);
}

TEST(FindRange, MaskedCellsDoNotCount) {
  const Grid grid = Grid(2, 2, std::vector<float>{1, 99, 2, 3}).with_spans(causal_spans(2, 2));
  const ValueRange range = find_range(grid, {.mode = RangeMode::min_max});
  EXPECT_EQ(range.hi, 3);
  EXPECT_EQ(summarize({&grid, 1}, range).highest->value, 3);
}

TEST(FindRange, MeanAndDeviationAreCutToTheData) {
  std::vector<float> values(100, 0.0F);
  values[7] = 100;  // mean 1, sd √99
  const ValueRange range = find_range(row_of(values), {.mode = RangeMode::mean_sd});
  EXPECT_EQ(range.lo, 0);
  EXPECT_NEAR(range.hi, 1 + 3 * std::sqrt(99.0), 1e-9);
}

TEST(FindRange, OnALogScaleMeanAndDeviationAreThoseOfTheLogarithms) {
  // 40 × e^0, 40 × e^2 and one e^20; zeros, negative and special values do not count.
  std::vector<float> values(40, 1.0F);
  values.insert(values.end(), 40, std::exp(2.0F));
  values.push_back(std::exp(20.0F));
  const double n = 81, mean = (40 * 2 + 20) / n;
  const double sd =
      std::sqrt((40 * mean * mean + 40 * (2 - mean) * (2 - mean) + (20 - mean) * (20 - mean)) / n);
  const RangeRequest request = {.mode = RangeMode::mean_sd, .scale = Scale::log};
  for (const float other : {0.0F, -5.0F, std::nanf(""), std::numeric_limits<float>::infinity()})
    values.push_back(other);
  const Grid grid = row_of(values);
  const ValueRange range = find_range(grid, request);
  EXPECT_EQ(range.scale, Scale::log);
  EXPECT_EQ(range.lo, 1) << "cut to the smallest positive value";
  EXPECT_NEAR(std::log(range.hi), mean + 3 * sd, 1e-6);
  EXPECT_EQ(RangeFinder({grid}).range(request), range);
  const RangeSummary summary = summarize({&grid, 1}, range);
  EXPECT_EQ(summary.above, 1) << "e^20";
  EXPECT_EQ(summary.below, 2) << "0 and −5";
  // As doubles, from the smallest to the largest number there is.
  const Grid wide(1, 4, std::vector<double>{5e-324, 1e-300, 1, 1e300});
  const ValueRange all = find_range(wide, request);
  EXPECT_EQ(all.lo, 5e-324);
  EXPECT_EQ(all.hi, 1e300);
  // A narrow cluster far from 1.
  std::vector<double> close;
  for (int i = 0; i < 1000; ++i) close.push_back(1e-12 * (1 + 1e-3 * (i % 2)));
  close.push_back(1.01e-12);
  const ValueRange narrow = find_range(Grid(1, 1001, close), request);
  EXPECT_NEAR(narrow.hi / 1e-12, 1 + 0.51e-3 + 3 * 0.583e-3, 2e-5);
}

TEST(FindRange, FixedIsKeptUnlessItCannotBeDrawn) {
  const Grid grid = row_of({2, 5});
  EXPECT_EQ(find_range(grid, {RangeMode::fixed, -1, 4}).hi, 4);
  EXPECT_EQ(find_range(grid, {RangeMode::fixed, 4, -1}).lo, 2);
  EXPECT_EQ(find_range(grid, {RangeMode::fixed, 0, 4, Scale::log}).lo, 2);
}

TEST(FindRange, LogCountsPositiveValuesOnly) {
  const ValueRange range =
      find_range(row_of({-3, 0, 0.01F, 100}), {.mode = RangeMode::min_max, .scale = Scale::log});
  EXPECT_FLOAT_EQ(range.lo, 0.01);
  EXPECT_NEAR(normalized(1, range), 0.5, 1e-6);
  EXPECT_LT(normalized(0, range), -1e300);
  EXPECT_NEAR(value_at(0.5, range), 1, 1e-6);
  const Grid negative = row_of({-3, -1});
  EXPECT_EQ(find_range(negative, {.scale = Scale::log}).scale, Scale::linear);
}

TEST(FindRange, SymlogIsLinearBelowTheTypicalSize) {
  const ValueRange range = find_range(row_of({-2000, 2, 3, 4, 30000}),
                                      {.mode = RangeMode::min_max, .scale = Scale::symlog});
  EXPECT_EQ(range.threshold, 1);  // the power of ten below the median size, 4
  for (const double x : {-2000.0, -50.0, -0.5, 0.0, 0.25, 7.0, 30000.0})
    EXPECT_NEAR(value_at(normalized(x, range), range), x, 1e-9 * std::max(1.0, std::abs(x)));
  const double zero = normalized(0, range);
  EXPECT_NEAR(normalized(1, range) - zero, normalized(10, range) - normalized(1, range), 1e-12);
}

TEST(FindRange, ACenterMakesItSymmetric) {
  const ValueRange linear =
      find_range(row_of({-1, 5}), {.mode = RangeMode::min_max, .center = 0.0});
  EXPECT_EQ(linear.lo, -5);
  EXPECT_EQ(normalized(0, linear), 0.5);
  const ValueRange log = find_range(
      row_of({0.01F, 10}), {.mode = RangeMode::min_max, .scale = Scale::log, .center = 1.0});
  EXPECT_NEAR(log.hi, 100, 1e-4);
  EXPECT_NEAR(normalized(1, log), 0.5, 1e-12);
}

TEST(FindRange, EveryInputGivesAUsableRange) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::nanf("");
  const double huge = std::numeric_limits<double>::max();
  const std::vector<Grid> grids = {
      Grid(),
      row_of({0}),
      row_of({-7, -7, -7}),
      row_of({nan, nan}),
      row_of({inf, -inf}),
      row_of({1e-40F}),
      Grid(1, 1, std::vector<double>{5e-324}),
      Grid(1, 2, std::vector<double>{-huge, huge}),
      Grid(1, 2, std::vector<double>{huge, huge}),
      Grid(1, 3, std::vector<double>{1e-300, 1, 1e300}),
      Grid(2, 2, std::vector<float>(4)).with_spans({{0, 0}, {1, 1}}),
  };
  for (const Grid& grid : grids)
    for (const RangeMode mode :
         {RangeMode::min_max, RangeMode::percentile, RangeMode::mean_sd, RangeMode::fixed})
      for (const Scale scale : {Scale::linear, Scale::log, Scale::symlog})
        for (const std::optional<double> center :
             {std::optional<double>(), std::optional<double>(0), std::optional<double>(1)}) {
          SCOPED_TRACE(testing::Message() << "grid " << &grid - grids.data() << ' '
                                          << range_mode_label(mode) << ' ' << scale_text(scale));
          expect_usable(find_range(grid, {mode, 0, 0, scale, center}));
        }
}

TEST(FieldCases, FC73_TheOutlierDoesNotOwnTheColorScale) {
  // 64 × 4096, one value 7200, the rest |x| < 2.
  std::vector<float> values(64 * 4096);
  std::mt19937 random(5);
  std::uniform_real_distribution<float> uniform(-2, 2);
  for (float& value : values) value = uniform(random);
  values[10 * 4096 + 507] = 7200;
  const Grid grid(64, 4096, values);
  const ValueRange range = find_range(grid, {});
  EXPECT_NEAR(range.lo, -1.96, 0.01);
  EXPECT_NEAR(range.hi, 1.96, 0.01);
  const RangeSummary summary = summarize({&grid, 1}, range);
  EXPECT_EQ(summary.highest->value, 7200);
  EXPECT_EQ(summary.highest->row, 10);
  EXPECT_EQ(summary.highest->col, 507);
  // Nearest ranks: ⌊1 %⌋ of the cells lie beyond each end, and all are accounted for.
  EXPECT_NEAR(static_cast<double>(summary.above), 0.01 * grid.size(), 1);
  EXPECT_NEAR(static_cast<double>(summary.below), 0.01 * grid.size(), 1);
  EXPECT_EQ(std::accumulate(summary.histogram.begin(), summary.histogram.end(), std::int64_t{0}) +
                summary.above + summary.below,
            grid.size());
  EXPECT_NE(summary_text(summary).find("max 7,200.0"), std::string::npos);
  const Colormap map = colormap("viridis");
  EXPECT_EQ(color_of(7200, range, map), map.over);
  EXPECT_GT(color_distance(map.over, map.colors.back()), 0.15);
}

TEST(FieldCases, FC78_WhatIsComparedSharesOneRange) {
  std::vector<float> small(6 * 9), large(4 * 5);
  for (std::size_t i = 0; i < small.size(); ++i) small[i] = static_cast<float>(i) / 53;
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = 7200.0F * static_cast<float>(i) / 19;
  const std::vector<Grid> layers = {Grid(6, 9, small), Grid(4, 5, large)};
  const ValueRange range = find_range(layers, {.mode = RangeMode::min_max});
  EXPECT_EQ(range.lo, 0);
  EXPECT_EQ(range.hi, 7200);
  const RangeSummary summary = summarize(layers, range);
  EXPECT_EQ(summary.highest->grid, 1);
  EXPECT_EQ(summary.finite, 54 + 20);
}

TEST(RangeSummary, HistogramFollowsTheAxisOfTheScale) {
  const Grid grid = row_of({1, 2, 3, 20, 30, 200, 0.5F, 5000});
  const ValueRange range = find_range(grid, {RangeMode::fixed, 1, 1000, Scale::log});
  const RangeSummary summary = summarize({&grid, 1}, range, 3);
  EXPECT_EQ(summary.histogram, (std::vector<std::int64_t>{3, 2, 1}));
  EXPECT_EQ(summary.below, 1);
  EXPECT_EQ(summary.above, 1);
}

TEST(RangeText, ReadsWhatItWrites) {
  for (const char* text : {"minmax", "percentile", "meansd", "-1.5,7200", "1e-05,1"})
    EXPECT_EQ(range_text(parse_range_request(text)), text);
  EXPECT_EQ(parse_range_request("0.5,2", "log").scale, Scale::log);
  for (const char* text : {"", "most", "1", "1,", "2,1", "0,inf", "1,1"})
    EXPECT_THROW(parse_range_request(text), Error) << text;
  EXPECT_THROW(parse_range_request("0,1", "log"), Error);
  EXPECT_THROW(parse_scale("cubic"), Error);
}

}  // namespace
}  // namespace sinkscope
