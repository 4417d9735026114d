// SPDX-License-Identifier: GPL-3.0-or-later
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/draw/grid.h"
#include "core/draw/raster.h"
#include "core/error.h"

namespace sinkscope {
namespace {

TEST(Grid, KeepsRowsApartFromColumns) {
  const Grid grid(2, 3, std::vector<float>{1, 2, 3, 4, 5, 6});
  EXPECT_EQ(grid.at(0, 2), 3);
  EXPECT_EQ(grid.at(1, 0), 4);
  EXPECT_TRUE(grid.exists(1, 2));
}

TEST(Grid, RefusesAWrongNumberOfValuesOrSpans) {
  EXPECT_THROW(Grid(2, 3, std::vector<float>(5)), Error);
  EXPECT_THROW(Grid(-1, 3, std::vector<double>()), Error);
  const Grid grid(2, 3, std::vector<float>(6));
  EXPECT_THROW(grid.with_spans({{0, 1}}), Error);
  EXPECT_THROW(grid.with_spans({{0, 1}, {0, 4}}), Error);
  EXPECT_THROW(grid.with_spans({{0, 1}, {2, 1}}), Error);
}

TEST(Grid, KeepsDoublePrecision) {
  EXPECT_EQ(Grid(1, 2, std::vector<double>{1e300, 1e-310}).at(0, 1), 1e-310);
}

TEST(Grid, CausalSpansFollowFirstRowAndWindow) {
  EXPECT_EQ(causal_spans(3, 4), (std::vector<CellSpan>{{0, 1}, {0, 2}, {0, 3}}));
  EXPECT_EQ(causal_spans(2, 4, 3), (std::vector<CellSpan>{{0, 4}, {0, 4}}));
  EXPECT_EQ(causal_spans(4, 4, 0, 2), (std::vector<CellSpan>{{0, 1}, {0, 2}, {1, 3}, {2, 4}}));
}

TEST(Raster, IsOnePixelACellAndTransparentWhereMasked) {
  const Grid grid =
      Grid(2, 3, std::vector<float>{0, 9, 9, 1, 0.5F, 9}).with_spans({{0, 1}, {0, 2}});
  const Colormap map = colormap("viridis");
  const Raster raster = color_cells(grid, ValueRange{}, map);
  ASSERT_EQ(raster.width, 3);
  ASSERT_EQ(raster.height, 2);
  EXPECT_EQ(raster.at(0, 0), map.colors.front());
  EXPECT_EQ(raster.at(0, 1), map.colors.back());
  EXPECT_EQ(raster.at(1, 1), map.colors[128]);
  for (const auto& [x, y] : {std::pair{1, 0}, {2, 0}, {2, 1}}) EXPECT_EQ(raster.at(x, y), 0u);
}

TEST(Raster, AgreesWithTheColorOfEachValueOnEveryScale) {
  std::vector<float> values;
  for (int i = 0; i < 700; ++i) values.push_back(std::exp(0.02F * i) * (i % 3 == 0 ? -1.0F : 1.0F));
  const Grid grid(7, 100, values);
  const Colormap map = colormap("blue-orange");
  for (const Scale scale : {Scale::linear, Scale::log, Scale::symlog}) {
    const ValueRange range = find_range(grid, {.scale = scale});
    const Raster raster = color_cells(grid, range, map);
    int differ = 0;
    for (int r = 0; r < 7; ++r)
      for (int c = 0; c < 100; ++c)
        differ += color_distance(raster.at(c, r), color_of(grid.at(r, c), range, map)) > 0.02;
    EXPECT_EQ(differ, 0) << scale_text(scale);
  }
}

TEST(FieldCases, FC75_NanAndInfinitiesAreDrawnApart) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const Grid grid(2, 2, std::vector<float>{std::nanf(""), kInf, -kInf, 1});
  for (const RangeMode mode : {RangeMode::min_max, RangeMode::percentile, RangeMode::mean_sd}) {
    const ValueRange range = find_range(grid, {.mode = mode});
    EXPECT_EQ(range.lo, 0.5);  // the finite cells are the single 1
    EXPECT_EQ(range.hi, 1.5);
    const Colormap map = colormap("viridis");
    const Raster raster = color_cells(grid, range, map);
    EXPECT_EQ(raster.at(0, 0), map.nan);
    EXPECT_EQ(raster.at(1, 0), map.colors.back());
    EXPECT_EQ(raster.at(0, 1), map.colors.front());
    EXPECT_EQ(raster.at(1, 1), map.colors[128]);
    const RangeSummary summary = summarize({&grid, 1}, range);
    EXPECT_EQ(summary.nan, 1);
    EXPECT_EQ(summary.plus_inf, 1);
    EXPECT_EQ(summary.minus_inf, 1);
    EXPECT_EQ(summary.finite, 1);
    EXPECT_EQ(summary_text(summary), "max 1 · 1 +inf · 1 −inf · 1 NaN");
  }
}

TEST(FieldCases, FC80_HugeAndTinyValuesKeepTheirColors) {
  const Colormap map = colormap("viridis");
  for (const double unit : {1e300, 1e-40, 1e-310}) {
    const Grid grid(1, 5, std::vector<double>{0, 1 * unit, 2 * unit, 3 * unit, 4 * unit});
    const ValueRange range = find_range(grid, {.mode = RangeMode::min_max});
    const Raster raster = color_cells(grid, range, map);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(raster.at(i, 0), map.colors[i * 64]) << unit << ' ' << i;
    EXPECT_EQ(raster.at(4, 0), map.colors.back());
  }
  const Grid tiny(1, 3, std::vector<float>{1e-40F, 2e-40F, 3e-40F});  // float32 denormals
  const Raster raster = color_cells(tiny, find_range(tiny, {.mode = RangeMode::min_max}), map);
  EXPECT_EQ(raster.at(1, 0), map.colors[128]);
}

}  // namespace
}  // namespace sinkscope
