// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/model/attention_products.h"

#include <gtest/gtest.h>

#include <random>
#include <tuple>
#include <vector>

#include "capture/model/attention_products_isa.h"

namespace sinkscope {
namespace {

constexpr float kUntouched = -7.5f;

std::vector<float> random_rows(int rows, int stride, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<std::size_t>(rows) * static_cast<std::size_t>(stride));
  for (float& v : x) v = normal(generator);
  return x;
}

struct Shape {
  int rows, keys, width;
};
class Products : public ::testing::TestWithParam<Shape> {};

TEST_P(Products, ScoresAreScaledDotProductsAndStayInsideTheirColumns) {
  const auto [rows, keys, width] = GetParam();
  const int q_stride = width + 3, k_stride = width + 5, stride = keys + 4;
  const auto q = random_rows(rows, q_stride, 1), k = random_rows(keys, k_stride, 2);
  std::vector<float> panels(static_cast<std::size_t>(panel_floats(keys, width)));
  pack_keys(k.data(), k_stride, keys, width, panels.data());
  std::vector<float> scores(static_cast<std::size_t>(rows * stride), kUntouched);
  score_rows(q.data(), q_stride, rows, width, 0.25f, panels.data(), keys, scores.data(), stride);
  for (int r = 0; r < rows; ++r) {
    for (int j = 0; j < stride; ++j) {
      double expected = 0;
      for (int i = 0; j < keys && i < width; ++i)
        expected += 0.25 * q[static_cast<std::size_t>(r * q_stride + i)] *
                    k[static_cast<std::size_t>(j * k_stride + i)];
      if (j >= keys) expected = kUntouched;
      ASSERT_NEAR(scores[static_cast<std::size_t>(r * stride + j)], expected, 2e-6 * width)
          << "row " << r << ", key " << j;
    }
  }
}

TEST_P(Products, ValuesAreMixedByTheirProbabilities) {
  const auto [rows, keys, width] = GetParam();
  const int p_stride = keys + 2, v_stride = width + 7, stride = width + 1;
  const auto p = random_rows(rows, p_stride, 3), v = random_rows(keys, v_stride, 4);
  std::vector<float> out(static_cast<std::size_t>(rows * stride), kUntouched);
  mix_values(p.data(), p_stride, rows, keys, v.data(), v_stride, width, out.data(), stride);
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < stride; ++c) {
      double expected = 0;
      for (int j = 0; c < width && j < keys; ++j)
        expected += static_cast<double>(p[static_cast<std::size_t>(r * p_stride + j)]) *
                    v[static_cast<std::size_t>(j * v_stride + c)];
      if (c >= width) expected = kUntouched;
      ASSERT_NEAR(out[static_cast<std::size_t>(r * stride + c)], expected, 1e-5 + 4e-7 * keys)
          << "row " << r << ", dim " << c;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Products,
                         ::testing::Values(Shape{1, 1, 1}, Shape{3, 17, 5}, Shape{8, 32, 64},
                                           Shape{13, 37, 24}, Shape{20, 600, 40},
                                           Shape{64, 129, 80}));

TEST(Products, EveryInstructionSetGivesTheSameToRounding) {
  const int rows = 11, keys = 300, width = 48;
  const auto p = random_rows(rows, keys, 5), v = random_rows(keys, width, 6);
  std::vector<float> best(static_cast<std::size_t>(rows * width)), base(best);
  mix_values(p.data(), keys, rows, keys, v.data(), width, width, best.data(), width);
  isa_base::mix_values(p.data(), keys, rows, keys, v.data(), width, width, base.data(), width);
  for (std::size_t i = 0; i < best.size(); ++i) ASSERT_NEAR(best[i], base[i], 5e-5) << i;
}

}  // namespace
}  // namespace sinkscope
