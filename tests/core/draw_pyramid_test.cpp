// SPDX-License-Identifier: GPL-3.0-or-later
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "core/draw/pyramid.h"
#include "core/error.h"

namespace sinkscope {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

int count_of(const PooledCells& cells, double value) {
  int n = 0;
  for (int r = 0; r < cells.rows; ++r)
    for (int c = 0; c < cells.cols; ++c)
      n += cells.kind(r, c) == CellKind::finite && cells.at(r, c) == value;
  return n;
}

TEST(FieldCases, FC74_OneHotCellStaysVisibleAtEveryZoom) {
  constexpr int kSize = 4096, kRow = 2741, kCol = 1303;
  std::vector<float> values(std::size_t{kSize} * kSize);
  values[std::size_t{kRow} * kSize + kCol] = 1;
  const Pyramid pyramid(Grid(kSize, kSize, std::move(values)));
  const PooledCells whole = pyramid.reduced(400, 400);
  EXPECT_TRUE(whole.pooled);
  EXPECT_GE(count_of(whole, 1), 1);
  EXPECT_EQ(whole.at(kRow * 400 / kSize, kCol * 400 / kSize), 1);
  // Every zoom step and offset that contains the cell, on pictures of odd sizes.
  std::mt19937 random(7);
  for (double extent = kSize; extent > 2; extent /= 1.19) {
    for (int trial = 0; trial < 4; ++trial) {
      std::uniform_real_distribution<double> offset(0, extent - 1);
      const double top = std::clamp(kRow - offset(random), 0.0, kSize - extent);
      const double left = std::clamp(kCol - offset(random), 0.0, kSize - extent);
      const int rows = 97 + 31 * trial, cols = 211 - 40 * trial;
      const CellRect view{top, left, top + extent, left + extent};
      const PooledCells cells = pyramid.reduced(view, rows, cols);
      const int y = static_cast<int>((kRow + 0.5 - top) / extent * rows);
      const int x = static_cast<int>((kCol + 0.5 - left) / extent * cols);
      EXPECT_EQ(cells.at(y, x), 1) << "extent " << extent << " trial " << trial;
      // It is not smeared either: at most one pixel to each side of its own.
      const auto own = [&](int n) { return std::ceil(n / extent) + 2; };
      EXPECT_LE(count_of(cells, 1), own(rows) * own(cols));
    }
  }
}

TEST(Pyramid, EqualsDirectPoolingWherePixelsAreSmall) {
  // Below four cells a pixel the edges are those of cells, so that the result is exact.
  constexpr int kRows = 37, kCols = 53;
  std::vector<float> values(kRows * kCols);
  std::mt19937 random(1);
  for (float& value : values) value = std::normal_distribution<float>()(random);
  const Grid grid(kRows, kCols, values);
  const auto edge = [](int i, double size, int n) {
    return static_cast<int>(std::floor(i * size / n + 0.5));
  };
  for (const Reduction reduction :
       {Reduction::max_abs, Reduction::min, Reduction::max, Reduction::mean}) {
    const PooledCells cells = Pyramid(grid, reduction).reduced(13, 20);
    for (int i = 0; i < 13; ++i)
      for (int j = 0; j < 20; ++j) {
        double largest = 0, lo = 1e9, hi = -1e9, sum = 0;
        int n = 0;
        for (int r = edge(i, kRows, 13); r < edge(i + 1, kRows, 13); ++r)
          for (int c = edge(j, kCols, 20); c < edge(j + 1, kCols, 20); ++c, ++n) {
            const double x = grid.at(r, c);
            if (std::abs(x) > std::abs(largest)) largest = x;
            lo = std::min(lo, x);
            hi = std::max(hi, x);
            sum += x;
          }
        const double expected = reduction == Reduction::max_abs ? largest
                                : reduction == Reduction::min   ? lo
                                : reduction == Reduction::max   ? hi
                                                                : sum / n;
        EXPECT_NEAR(cells.at(i, j), expected, 1e-12) << reduction_text(reduction);
      }
  }
}

TEST(Pyramid, ReducesToOneCellOfAnyShape) {
  std::vector<double> values(5 * 7);
  for (int i = 0; i < 35; ++i) values[i] = i - 20;  // −20 … 14
  const Grid grid(5, 7, values);
  EXPECT_EQ(Pyramid(grid, Reduction::max_abs).reduced(1, 1).at(0, 0), -20);
  EXPECT_EQ(Pyramid(grid, Reduction::min).reduced(1, 1).at(0, 0), -20);
  EXPECT_EQ(Pyramid(grid, Reduction::max).reduced(1, 1).at(0, 0), 14);
  EXPECT_EQ(Pyramid(grid, Reduction::mean).reduced(1, 1).at(0, 0), -3);
}

TEST(Pyramid, MagnifiedCellsAreExactAndCutAtTheEdge) {
  const Grid grid(2, 3, std::vector<float>{1, 2, 3, 4, 5, 6});
  const PooledCells cells = Pyramid(grid).reduced({-1, 0, 2, 6}, 6, 6);
  EXPECT_FALSE(cells.pooled);
  EXPECT_EQ(cells.kind(1, 0), CellKind::masked);  // above the grid
  EXPECT_EQ(cells.at(2, 0), 1);
  EXPECT_EQ(cells.at(3, 2), 3);
  EXPECT_EQ(cells.at(5, 1), 5);
  EXPECT_EQ(cells.kind(5, 3), CellKind::masked);  // right of the grid
}

TEST(Pyramid, NanAndInfinityDoNotDisappear) {
  std::vector<float> values(64 * 32, 1.0F);
  values[3 * 32 + 30] = std::nanf("");
  values[40 * 32 + 1] = kInf;
  values[60 * 32 + 20] = -kInf;
  for (const Reduction reduction :
       {Reduction::max_abs, Reduction::min, Reduction::max, Reduction::mean}) {
    const PooledCells cells = Pyramid(Grid(64, 32, values), reduction).reduced(8, 4);
    EXPECT_EQ(cells.kind(0, 3), CellKind::nan);
    EXPECT_EQ(cells.kind(5, 0), CellKind::plus_inf);
    EXPECT_EQ(cells.kind(7, 2), CellKind::minus_inf);
    EXPECT_EQ(cells.at(4, 2), 1);
    EXPECT_EQ(Pyramid(Grid(64, 32, values), reduction).reduced(1, 1).kind(0, 0), CellKind::nan);
  }
}

TEST(Pyramid, MaskedCellsContributeNothing) {
  std::vector<float> values(40 * 40, 9.0F);
  for (int r = 0; r < 40; ++r)
    for (int c = 0; c <= r; ++c) values[r * 40 + c] = -1;
  const Grid grid = Grid(40, 40, values).with_spans(causal_spans(40, 40));
  for (const Reduction reduction :
       {Reduction::max_abs, Reduction::min, Reduction::max, Reduction::mean})
    for (const int n : {5, 8, 13, 40}) {
      const PooledCells cells = Pyramid(grid, reduction).reduced(n, n);
      for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j) {
          EXPECT_EQ(cells.kind(i, j), j <= i ? CellKind::finite : CellKind::masked)
              << n << ": " << i << ',' << j;
          if (j <= i) {
            EXPECT_EQ(cells.at(i, j), -1);
          }
        }
    }
}

TEST(Pyramid, FarthestFromOneKeepsTinyGains) {
  std::vector<float> gains(3 * 640, 1.0F);
  gains[640 + 507] = 0.004F;
  gains[640 + 506] = 3;
  gains[2 * 640 + 100] = -7;
  const PooledCells cells = Pyramid(Grid(3, 640, gains), Reduction::from_one).reduced(3, 40);
  EXPECT_EQ(cells.at(1, 507 / 16), 0.004F);
  EXPECT_EQ(cells.at(2, 100 / 16), -7);
  EXPECT_EQ(cells.at(0, 5), 1);
}

TEST(Pyramid, EmptyAndSingleCells) {
  EXPECT_EQ(Pyramid().reduced(3, 2).kind(2, 1), CellKind::masked);
  EXPECT_EQ(Pyramid(Grid(1, 1, std::vector<float>{5})).reduced(3, 2).at(2, 1), 5);
  EXPECT_EQ(Pyramid(Grid(1, 1, std::vector<float>{5})).reduced(0, 2).values.size(), 0u);
}

TEST(Pyramid, ReductionNamesAreReadBack) {
  for (const Reduction reduction :
       {Reduction::max_abs, Reduction::min, Reduction::max, Reduction::mean, Reduction::from_one})
    EXPECT_EQ(parse_reduction(reduction_text(reduction)), reduction);
  EXPECT_THROW(parse_reduction("median"), Error);
  EXPECT_EQ(reduction_label(Reduction::max_abs), "max |x| of each pixel");
}

TEST(Pyramid, BandsOfSeveralThreadsAreTheRowsOfOne) {
  std::vector<float> values(300 * 500);
  std::mt19937 random(8);
  std::normal_distribution<float> normal;
  for (float& value : values) value = normal(random);
  const Pyramid pyramid(Grid(300, 500, values).with_spans(causal_spans(300, 500, 200)));
  // More pixels than cells, and fewer.
  for (const CellRect& view : {CellRect{20, 30, 60, 90}, CellRect{0, 0, 300, 500}}) {
    constexpr int kRows = 1100, kCols = 900;
    std::vector<double> one(kRows * kCols), several(kRows * kCols);
    const auto keep = [&](std::vector<double>& into) {
      return [&into](const PixelRow& row) {
        for (int i = 0; i < row.cols; ++i)
          into[static_cast<std::size_t>(row.row * row.cols + i)] =
              row.kinds[i] == CellKind::finite ? row.values[i] : 1e9;
      };
    };
    pyramid.reduce_rows(view, kRows, kCols, keep(one));
    pyramid.reduce_bands(view, kRows, kCols, keep(several));
    EXPECT_EQ(one, several);
  }
}

}  // namespace
}  // namespace sinkscope
