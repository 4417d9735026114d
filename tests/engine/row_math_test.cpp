// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/model/row_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace sinkscope {
namespace {

std::vector<float> random_values(std::size_t n, float scale, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> x(n);
  for (float& v : x) v = normal(generator);
  return x;
}

// One value of 25,000 among values near 1, as SmolLM2's residual stream has it, over several runs
// of 256 and a rest.
TEST(RowMath, RmsNormIsTheFormulaAlsoBesideAMassiveValue) {
  const int width = 611, stride = 640, rows = 3;
  auto x = random_values(stride * rows, 1, 1);
  x[507] = 25000;
  const auto gain = random_values(width, 1, 2);
  std::vector<float> y(static_cast<std::size_t>(rows * width));
  rms_norm_rows(x.data(), stride, rows, width, gain.data(), 3e-3, y.data(), width);
  for (int r = 0; r < rows; ++r) {
    double energy = 0;
    for (int i = 0; i < width; ++i)
      energy += std::pow(x[static_cast<std::size_t>(r * stride + i)], 2);
    for (int i = 0; i < width; ++i) {
      const double expected = x[static_cast<std::size_t>(r * stride + i)] /
                              std::sqrt(energy / width + 3e-3) * gain[static_cast<std::size_t>(i)];
      ASSERT_NEAR(y[static_cast<std::size_t>(r * width + i)], expected,
                  4e-7 * std::fabs(expected) + 1e-12);
    }
  }
}

// (a, b) turned by an angle keeps its length; at 90 degrees it is (−b, a); the rest is copied.
TEST(RowMath, RotationTurnsHalvesAndCopiesWhatIsNotRotated) {
  const int width = 9, n = 6, heads = 2, stride = 11;
  const auto x = random_values(stride * heads, 1, 3);
  const std::vector<float> cos(n, 0.0f), sin = {-1, -1, -1, 1, 1, 1};
  std::vector<float> y(static_cast<std::size_t>(heads * width));
  rotate_heads(x.data(), stride, heads, width, cos.data(), sin.data(), n, y.data(), width);
  for (std::size_t h = 0; h < 2; ++h) {
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(y[h * 9 + i], -x[h * 11 + i + 3]);
      EXPECT_EQ(y[h * 9 + i + 3], x[h * 11 + i]);
      EXPECT_EQ(y[h * 9 + 6 + i], x[h * 11 + 6 + i]);
    }
  }
}

TEST(RowMath, SiluTimesIsTheFormulaFromFarBelowToFarAbove) {
  auto gate = random_values(53, 6, 4);
  const auto up = random_values(53, 2, 5);
  gate[0] = -200;
  gate[1] = 200;
  gate[2] = 0;
  std::vector<float> y(53);
  silu_times(gate.data(), up.data(), 53, y.data());
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double expected =
        gate[i] / (1 + std::exp(-static_cast<double>(gate[i]))) * static_cast<double>(up[i]);
    EXPECT_NEAR(y[i], expected, 5e-7 * std::fabs(expected) + 1e-30) << gate[i];
  }
}

// What KL is made of: against a sum in double, at a length that fills no lane, and 0 for equals.
TEST(RowMath, MeanGapIsTheSumUnderTheSoftmax) {
  const auto z = random_values(777, 6, 6), other = random_values(777, 6, 7);
  double mass = 0, want = 0;
  for (float v : z) mass += std::exp(static_cast<double>(v));
  const double lse = std::log(mass);
  for (std::size_t i = 0; i < z.size(); ++i)
    want += std::exp(z[i] - lse) * (static_cast<double>(z[i]) - other[i]);
  EXPECT_NEAR(mean_gap(z.data(), other.data(), 777, lse), want, 1e-6 * std::max(1.0, want));
  EXPECT_EQ(mean_gap(z.data(), z.data(), 777, lse), 0);
}

}  // namespace
}  // namespace sinkscope
