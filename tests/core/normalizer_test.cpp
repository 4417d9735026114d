// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/normalizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "core/error.h"

namespace sinkscope {
namespace {

using ::testing::ElementsAre;
using ::testing::Pointwise;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
using Kind = NormalizerKind;

MATCHER_P(NearTo, tolerance, "") {
  return std::abs(std::get<0>(arg) - std::get<1>(arg)) <= tolerance;
}

void expect_row(const Normalizer& normalizer, const std::vector<double>& z,
                const std::vector<double>& p, double null = 0) {
  const NormalizedRow row = normalize(normalizer, z);
  EXPECT_THAT(row.p, Pointwise(NearTo(5e-7), p)) << name_of(normalizer.kind);
  if (null >= 0) {
    EXPECT_NEAR(row.null_mass, null, 5e-7) << name_of(normalizer.kind);
  }
}

// The vectors of the science reference, table of section 17.
TEST(Normalizer, TestVectors) {
  const std::vector<double> a = {1, .5, -1}, b = {4, 1, 0, -2}, c = {0, 0, 0, 0};
  const Normalizer clip{.kind = Kind::clipped, .gamma = -.03, .zeta = 1};
  expect_row({Kind::softmax}, a, {.574097, .348207, .077696});
  expect_row({Kind::softmax1}, a, {.473991, .287490, .064148}, .174371);
  expect_row(clip, a, {.561320, .328654, .050026}, .06);
  expect_row({Kind::sparsemax}, a, {.75, .25, 0});
  expect_row({Kind::entmax15}, a, {.673993, .326007, 0});
  expect_row({Kind::softmax}, b, {.934072, .046505, .017108, .002315});
  expect_row({Kind::softmax1}, b, {.918360, .045722, .016820, .002276}, .016820);
  expect_row(clip, b, {.932094, .017900, 0, 0}, 1 - .932094 - .017900);
  expect_row({Kind::sparsemax}, b, {1, 0, 0, 0});
  expect_row({Kind::entmax15}, b, {1, 0, 0, 0});
  expect_row({Kind::softmax}, c, {.25, .25, .25, .25});
  expect_row({Kind::softmax1}, c, {.2, .2, .2, .2}, .2);
  expect_row(clip, c, {.2275, .2275, .2275, .2275}, .09);
  expect_row({Kind::sparsemax}, c, {.25, .25, .25, .25});
  expect_row({Kind::entmax15}, c, {.25, .25, .25, .25});
  expect_row({Kind::sigmoid}, {0, std::log(3.0)}, {.5, .75}, 0);
  expect_row({.kind = Kind::sink_logit, .sink_logit = 0}, {0, 0, 0}, {.25, .25, .25}, .25);
}

TEST(FieldCases, FC54_Softmax1IsNotShiftInvariantAndNeverOverflows) {
  expect_row({Kind::softmax1}, {2, 1, 0}, {.610296, .224515, .082595}, 1 - .917405);
  const NormalizedRow low = normalize({Kind::softmax1}, std::vector<double>{-20, -21, -22});
  EXPECT_NEAR(low.p[0], 2.0612e-9, 1e-13);
  EXPECT_NEAR(std::accumulate(low.p.begin(), low.p.end(), 0.0), 3.0984e-9, 1e-13);
  EXPECT_NEAR(low.null_mass, .9999999969, 1e-10);
  EXPECT_THAT(normalize({Kind::softmax1}, std::vector<double>{100, 0, 0}).p[0],
              ::testing::DoubleNear(1, 1e-15));
  EXPECT_NEAR(normalize({Kind::softmax1}, std::vector<double>{50, 0, -3}).null_mass, 1.9287e-22,
              1e-26);
  const NormalizedRow deep = normalize({Kind::softmax1}, std::vector<double>{-800, -801});
  EXPECT_THAT(deep.p, ElementsAre(0, 0));
  EXPECT_EQ(deep.null_mass, 1);
}

TEST(Normalizer, SinkLogitsSpanSoftmaxAndSoftmax1) {
  const std::vector<double> z = {.3, -2, 1.7, -kInfinity};
  const auto row = [&](double b) {
    return normalize({.kind = Kind::sink_logit, .sink_logit = b}, z);
  };
  EXPECT_EQ(row(-kInfinity).p, normalize({Kind::softmax}, z).p);
  EXPECT_EQ(row(-kInfinity).null_mass, 0);
  EXPECT_EQ(row(0).p, normalize({Kind::softmax1}, z).p);
  const double lse = log_sum_exp(z);
  for (const double b : {-3.0, 0.5, 4.0}) {
    EXPECT_NEAR(row(b).null_mass, 1 / (1 + std::exp(lse - b)), 1e-15);
    // Softmax times a gate of the whole row.
    for (std::size_t j = 0; j < z.size(); ++j)
      EXPECT_NEAR(row(b).p[j], normalize({Kind::softmax}, z).p[j] * (1 - row(b).null_mass), 1e-15);
  }
}

TEST(Normalizer, ClippedSoftmaxReachesZeroAndOneExactly) {
  const Normalizer clip{.kind = Kind::clipped, .gamma = -.1, .zeta = 1.1};
  const NormalizedRow row = normalize(clip, std::vector<double>{8, 0, -kInfinity});
  EXPECT_THAT(row.p, ElementsAre(1, 0, 0));
  EXPECT_THROW(normalize({.kind = Kind::clipped, .gamma = .1}, std::vector<double>{1}), Error);
  EXPECT_THROW(normalize({.kind = Kind::clipped, .gamma = -.1, .zeta = .9}, std::vector<double>{1}),
               Error);
}

TEST(Normalizer, RowsSumToOneWhereTheySay) {
  std::mt19937 random(3);
  std::normal_distribution<double> normal(0, 4);
  for (int n = 1; n < 40; n += 3) {
    std::vector<double> z(static_cast<std::size_t>(n));
    for (double& value : z) value = normal(random);
    if (n > 5) z[2] = -kInfinity;
    for (const NormalizerFacts& facts : normalizers()) {
      if (facts.kind == Kind::clipped) continue;
      const NormalizedRow row = normalize({facts.kind}, z);
      const double sum = std::accumulate(row.p.begin(), row.p.end(), 0.0);
      if (facts.rows_sum_to_one) {
        EXPECT_NEAR(sum, 1, 1e-12) << facts.name;
      }
      if (n > 5) {
        EXPECT_EQ(row.p[2], 0) << facts.name;
      }
      for (double p : row.p) EXPECT_GE(p, 0);
    }
  }
}

TEST(Normalizer, ARowOfMaskedKeysGetsNothing) {
  const std::vector<double> z = {-kInfinity, -kInfinity};
  for (const NormalizerFacts& facts : normalizers())
    EXPECT_THAT(normalize({facts.kind}, z).p, ElementsAre(0, 0)) << facts.name;
  EXPECT_EQ(normalize({Kind::softmax1}, z).null_mass, 1);
}

TEST(Normalizer, NamesGoBothWays) {
  for (const NormalizerFacts& facts : normalizers())
    EXPECT_EQ(normalizer_named(facts.name), facts.kind);
  EXPECT_FALSE(normalizer_named("softmaxx"));
}

}  // namespace
}  // namespace sinkscope
