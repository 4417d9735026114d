// SPDX-License-Identifier: GPL-3.0-or-later
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "core/error.h"
#include "core/rescale/report.h"
#include "core/rescale/theory.h"
#include "tests/core/planted_capture.h"

namespace sinkscope {
namespace {

double square_sum(const std::vector<double>& x) {
  double sum = 0;
  for (double v : x) sum += v * v;
  return sum;
}

// y = λ ⊙ h / √(mean(h²) + ε)
std::vector<double> rms_norm(const std::vector<double>& h, const std::vector<double>& gain,
                             double eps) {
  const double rms = std::sqrt(square_sum(h) / static_cast<double>(h.size()) + eps);
  std::vector<double> y;
  for (std::size_t i = 0; i < h.size(); ++i) y.push_back(gain[i] * h[i] / rms);
  return y;
}

double rms_of(const std::vector<double>& y) {
  return std::sqrt(square_sum(y) / static_cast<double>(y.size()));
}

// The vector of the science reference: h = (12, 3, 4), λ = (.1, 1, .8), d = 0.
TEST(RescaleTheory, TestVector) {
  const std::vector<double> h = {12, 3, 4}, gain = {.1, 1, .8};
  const double r2 = 144.0 / 169, mean_square = 169.0 / 3;
  const std::vector<double> y = rms_norm(h, gain, 0);
  EXPECT_NEAR(y[0], .159882, 5e-7);
  EXPECT_NEAR(rms_of(y), .349810, 5e-7);
  EXPECT_NEAR(rescale_factor(r2, mean_square, 0), 5.0 / 13, 1e-12);
  EXPECT_NEAR(upper_bound_1(r2, 1, .1), .395537, 5e-7);
  EXPECT_NEAR(upper_bound_5(r2, 1, .1) * std::sqrt(3.0), .685091, 5e-7);
  EXPECT_NEAR(lower_bound(r2, .8, .1), .321240, 5e-7);
  EXPECT_NEAR(r2, .852071, 5e-7);
  EXPECT_NEAR(share_after(r2, .1, mean_square, 0, rms_of(y)), .069632, 5e-7);
  EXPECT_NEAR(clip_growth(25, 12, 4), 2.030259, 5e-7);
}

TEST(RescaleTheory, FactorsOfTheReference) {
  // At r = .3, .6, .9, .99 with |λ_d| = .004 · max.
  const std::array<double, 4> r = {.3, .6, .9, .99}, want = {.954, .800, .436, .141};
  for (std::size_t i = 0; i < r.size(); ++i)
    EXPECT_NEAR(upper_bound_1(r[i] * r[i], 1, .004), want[i], 5e-4);
  EXPECT_NEAR(sink_gap(64, .1), std::log(63 * 9.0), 1e-12);
  EXPECT_NEAR(sink_gap(512, .1), 8.4, .05);
  EXPECT_NEAR(sink_gap(2048, .01), 12.2, .05);
}

// 20,000 random cases: α, the bounds, the shares and clipping against the norm itself.
TEST(RescaleTheory, RandomCasesHold) {
  std::mt19937_64 random(2601);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  for (int trial = 0; trial < 20000; ++trial) {
    const auto D = static_cast<std::size_t>(4 + random() % 253);
    const std::size_t d = random() % D;
    const double eps = std::array{0.0, 1e-6, 1e-2}[random() % 3];
    std::vector<double> h(D), gain(D);
    for (double& v : h) v = normal(random);
    for (double& v : gain) v = .1 + 2 * uniform(random);
    h[d] *= std::exp(6 * uniform(random) - 2);
    gain[d] = uniform(random) * (trial % 2 == 0 ? 1 : 3);
    double max_all = 0, max_others = 0, min_others = 1e300;
    for (std::size_t i = 0; i < D; ++i) {
      max_all = std::max(max_all, gain[i]);
      if (i == d) continue;
      max_others = std::max(max_others, gain[i]);
      min_others = std::min(min_others, gain[i]);
    }
    const double mean_square = square_sum(h) / static_cast<double>(D);
    const double r2 = h[d] * h[d] / square_sum(h);
    const std::vector<double> y = rms_norm(h, gain, eps);
    const double rms = rms_of(y);
    const double slack = 1 + 1e-12;
    ASSERT_LE(rms, upper_bound_1(r2, max_all, gain[d] / max_all) * slack);
    ASSERT_LE(rms, upper_bound_5(r2, max_others, gain[d]) * slack);
    if (eps == 0) {
      ASSERT_GE(rms * slack, lower_bound(r2, min_others, gain[d]));
    }
    ASSERT_NEAR(share_after(r2, gain[d], mean_square, eps, rms), y[d] * y[d] / square_sum(y), 1e-9);
    std::vector<double> without = h;
    without[d] = 0;
    const std::vector<double> alone = rms_norm(without, gain, eps);
    const std::size_t other = (d + 1) % D;
    ASSERT_NEAR(y[other] / alone[other], rescale_factor(r2, mean_square, eps), 1e-9);
    std::vector<double> clipped = h;
    const double c = std::abs(h[d]) * uniform(random), width = static_cast<double>(D);
    clipped[d] = std::clamp(h[d], -c, c);
    ASSERT_NEAR(rms_norm(clipped, gain, eps)[other] / y[other],
                clip_growth(square_sum(without) + width * eps, h[d], c), 1e-9);
    // What passes through of a change of the others: a central difference of logarithms.
    const double step = 1e-5;
    std::vector<double> up = h, down = h;
    for (std::size_t i = 0; i < D; ++i) {
      if (i == d) continue;
      up[i] *= std::exp(step);
      down[i] *= std::exp(-step);
    }
    const double slope =
        std::log(rms_norm(up, gain, eps)[other] / rms_norm(down, gain, eps)[other]) / (2 * step);
    ASSERT_NEAR(elasticity(r2, mean_square, eps), slope, 1e-7);
  }
}

// 5,000 cases of four outliers at once: r_S² for r², the largest of their gains for λ_d.
TEST(RescaleTheory, RandomCasesOfFourOutliersHold) {
  std::mt19937_64 random(22966);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform;
  for (int trial = 0; trial < 5000; ++trial) {
    const auto D = static_cast<std::size_t>(5 + random() % 252);
    const double eps = std::array{0.0, 1e-6, 1e-2}[random() % 3];
    std::vector<double> h(D), gain(D);
    for (double& v : h) v = normal(random);
    for (double& v : gain) v = .1 + 2 * uniform(random);
    std::vector<int> dims;
    while (dims.size() < 4) {
      const int d = static_cast<int>(random() % D);
      if (std::find(dims.begin(), dims.end(), d) != dims.end()) continue;
      dims.push_back(d);
      h[static_cast<std::size_t>(d)] *= std::exp(6 * uniform(random) - 2);
      gain[static_cast<std::size_t>(d)] = uniform(random);
    }
    double max_all = 0, max_dims = 0, max_others = 0, min_others = 1e300, outliers = 0, after = 0;
    const double mean_square = square_sum(h) / static_cast<double>(D);
    const std::vector<double> y = rms_norm(h, gain, eps);
    for (std::size_t i = 0; i < D; ++i) {
      const bool is_outlier =
          std::find(dims.begin(), dims.end(), static_cast<int>(i)) != dims.end();
      max_all = std::max(max_all, gain[i]);
      (is_outlier ? max_dims : max_others) = std::max(is_outlier ? max_dims : max_others, gain[i]);
      if (!is_outlier) min_others = std::min(min_others, gain[i]);
      outliers += is_outlier ? h[i] * h[i] : 0;
      after += is_outlier ? y[i] * y[i] : 0;
    }
    const double r2 = outliers / square_sum(h), rms = rms_of(y), slack = 1 + 1e-12;
    ASSERT_LE(rms, upper_bound_1(r2, max_all, max_dims / max_all) * slack);
    ASSERT_LE(rms, upper_bound_5(r2, max_others, max_dims) * slack);
    // Their share after the norm is at most what the largest of their gains would make of it.
    ASSERT_LE(after / square_sum(y), share_after(r2, max_dims, mean_square, eps, rms) * slack);
    std::vector<double> without = h;
    for (int d : dims) without[static_cast<std::size_t>(d)] = 0;
    const std::vector<double> alone = rms_norm(without, gain, eps);
    std::size_t other = 0;
    while (std::find(dims.begin(), dims.end(), static_cast<int>(other)) != dims.end()) ++other;
    ASSERT_NEAR(y[other] / alone[other], rescale_factor(r2, mean_square, eps), 1e-9);
    const std::vector<float> rounded(h.begin(), h.end());
    ASSERT_NEAR(joint_r2(rounded, dims), r2, 1e-6);
  }
}

TEST(RescaleTheory, SeveralOutliersTogether) {
  const std::vector<float> h = {3, 0, -4, 12};
  const std::vector<int> dims = {0, 2};
  EXPECT_DOUBLE_EQ(joint_r2(h, dims), 25.0 / 169);
}

// A stranger's capture: heads are divided by.
TEST(RescaleReport, AModelWithoutHeadsIsRefused) {
  test::FakeCapture capture;
  test::add_planted_run(capture, "run0");
  capture.facts.n_heads = 0;
  try {
    rescale_report(capture, "run0", {});
    ADD_FAILURE() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::corrupt);
    EXPECT_STREQ(
        error.what(),
        (capture.path() + ": expected n_heads a multiple of n_kv_heads, found 0 and 1").c_str());
  }
}

}  // namespace
}  // namespace sinkscope
