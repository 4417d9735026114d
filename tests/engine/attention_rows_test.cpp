// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/model/attention_rows.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace sinkscope {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;
using ::testing::Pointwise;

// The same quantities, written down once more in double without any cleverness.
struct Reference {
  std::vector<double> p;
  double lse, entropy, gap, distance, first4, last8;
};

Reference reference_row(const std::vector<float>& scores, int query, int window) {
  const int first = window > 0 ? std::max(0, query - window + 1) : 0;
  std::vector<double> seen(scores.begin() + first, scores.begin() + query + 1);
  std::vector<double> sorted = seen;
  std::sort(sorted.begin(), sorted.end());
  double mass = 0;
  for (double s : seen) mass += std::exp(s - sorted.back());
  Reference r{std::vector<double>(scores.size(), 0.0),
              sorted.back() + std::log(mass),
              0,
              sorted.back() - sorted[(sorted.size() - 1) / 2],
              0,
              0,
              0};
  for (int j = first; j <= query; ++j) {
    const double p = std::exp(scores[static_cast<std::size_t>(j)] - r.lse);
    r.p[static_cast<std::size_t>(j)] = p;
    if (p > 0) r.entropy -= p * std::log(p);
    r.distance += p * (query - j);
    if (j < 4) r.first4 += p;
    if (j > query - 8) r.last8 += p;
  }
  return r;
}

struct Output {
  explicit Output(int rows) : values(10, std::vector<float>(static_cast<std::size_t>(rows))) {}
  AttentionRowStats view() {
    return {values[0].data(), values[1].data(), values[2].data(), values[3].data(),
            values[4].data(), values[5].data(), values[6].data(), values[7].data(),
            values[8].data(), values[9].data()};
  }
  std::vector<std::vector<float>> values;
};

struct Case {
  int query_begin, rows, window;
};

class AttentionRows : public ::testing::TestWithParam<Case> {};

TEST_P(AttentionRows, EqualADoubleReference) {
  const auto [query_begin, rows, window] = GetParam();
  const int key_begin = window > 0 ? std::max(0, query_begin - window + 1) : 0;
  const int n_keys = query_begin + rows - key_begin;
  const int stride = n_keys + 3;
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> scores(static_cast<std::size_t>(rows * stride)), norms;
  for (float& s : scores) s = normal(random);
  scores[0] += 40;  // one row with a sink that takes everything
  for (int j = 0; j < n_keys; ++j) norms.push_back(std::fabs(normal(random)));
  const std::vector<float> before = scores;
  std::vector<float> key_mass(static_cast<std::size_t>(n_keys), 0.0f);
  Output out(rows);
  attention_rows(
      {scores.data(), stride, query_begin, rows, key_begin, n_keys, window, norms.data()},
      out.view(), key_mass.data());

  std::vector<double> mass(static_cast<std::size_t>(n_keys), 0.0);
  for (int r = 0; r < rows; ++r) {
    std::vector<float> row(static_cast<std::size_t>(key_begin), 0.0f);
    row.insert(row.end(), before.begin() + r * stride, before.begin() + r * stride + n_keys);
    const Reference want = reference_row(row, query_begin + r, window);
    double norm_sum = 0;
    for (int j = 0; j < n_keys; ++j) {
      const double p = want.p[static_cast<std::size_t>(key_begin + j)];
      ASSERT_NEAR(scores[static_cast<std::size_t>(r * stride + j)], p, 5e-7) << r << ' ' << j;
      mass[static_cast<std::size_t>(j)] += p;
      norm_sum += p * norms[static_cast<std::size_t>(j)];
    }
    const auto at = static_cast<std::size_t>(r);
    EXPECT_NEAR(out.values[0][at], want.lse, 1e-5);
    EXPECT_NEAR(out.values[1][at], want.entropy, 2e-6);
    EXPECT_NEAR(out.values[2][at], *std::max_element(want.p.begin(), want.p.end()), 1e-6);
    EXPECT_NEAR(out.values[4][at], want.gap, 1e-5);
    EXPECT_NEAR(out.values[5][at], want.distance, 1e-3);
    EXPECT_NEAR(out.values[6][at], want.first4, 1e-6);
    EXPECT_NEAR(out.values[7][at], want.last8, 1e-6);
    EXPECT_NEAR(out.values[8][at], norm_sum, 1e-5);
  }
  for (int j = 0; j < n_keys; ++j)
    EXPECT_NEAR(key_mass[static_cast<std::size_t>(j)], mass[static_cast<std::size_t>(j)], 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Shapes, AttentionRows,
                         ::testing::Values(Case{0, 1, 0}, Case{0, 5, 0}, Case{0, 64, 0},
                                           Case{448, 64, 0}, Case{1000, 37, 0}, Case{100, 19, 7},
                                           Case{3, 9, 16}, Case{640, 20, 300}));

TEST(KthSmallest, IsElementKOfTheSortedValues) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (int n : {1, 2, 3, 4, 15, 16, 17, 100, 513}) {
    std::vector<float> x(static_cast<std::size_t>(n));
    for (float& v : x) v = normal(random);
    std::vector<float> sorted = x;
    std::sort(sorted.begin(), sorted.end());
    EXPECT_EQ(kth_smallest(x.data(), n, (n - 1) / 2), sorted[static_cast<std::size_t>((n - 1) / 2)])
        << n;
  }
}

TEST(KthSmallest, EndsOnTies) {
  const std::vector<float> x = {2, 2, 2, 2, 1, 2, 2, 9};
  EXPECT_EQ(
      kth_smallest(x.data(), static_cast<int>(x.size()), (static_cast<int>(x.size()) - 1) / 2), 2);
  const std::vector<float> zeros(37, 0.0f);
  EXPECT_EQ(kth_smallest(zeros.data(), 37, 18), 0);
  const std::vector<float> signs = {-1, 0, 0, 0, 0, 1};
  EXPECT_EQ(kth_smallest(signs.data(), 6, 2), 0);
}

TEST(Thumbnail, KeepsTheLargestOfEachBin) {
  // 10 positions in 4 bins: floor(i * 4 / 10) = 0 0 0 1 1 2 2 2 3 3.
  const int T = 10, bins = 4;
  std::vector<float> p(static_cast<std::size_t>(T * T), 0.0f), thumbnail(bins * bins, 0.0f);
  p[3 * 10 + 2] = 0.5f;   // row bin 1, key bin 0
  p[4 * 10 + 0] = 0.25f;  // same bin, smaller
  p[9 * 10 + 8] = 1.0f;   // row bin 3, key bin 3
  pool_thumbnail({p.data(), T, 0, T, 0, T, 0, nullptr}, T, bins, 0, thumbnail.data());
  EXPECT_THAT(thumbnail, Pointwise(FloatEq(), std::vector<float>{0, 0, 0, 0, 0.5, 0, 0, 0, 0, 0, 0,
                                                                 0, 0, 0, 0, 1}));
}

TEST(LogSumExp, NeverOverflows) {
  const std::vector<float> x = {1000, 1000, -1000};
  EXPECT_NEAR(log_sum_exp(x.data(), 3), 1000 + std::log(2.0), 1e-9);
  const std::vector<float> zeros(300, 0.0f);
  EXPECT_NEAR(log_sum_exp(zeros.data(), 300), std::log(300.0), 1e-6);
}

TEST(FirstAbove, FindsTheNextIndexOrTheEnd) {
  std::vector<float> x(50, 0.0f);
  x[37] = 2;
  EXPECT_EQ(first_above(x.data(), 50, 0, 1.0f), 37);
  EXPECT_EQ(first_above(x.data(), 50, 37, 1.0f), 37);
  EXPECT_EQ(first_above(x.data(), 50, 38, 1.0f), 50);
}

}  // namespace
}  // namespace sinkscope
