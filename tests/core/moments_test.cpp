// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/moments.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace sinkscope {
namespace {

std::vector<float> normal_values(int n, double mean, double sd, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal(mean, sd);
  std::vector<float> x;
  for (int i = 0; i < n; ++i) x.push_back(static_cast<float>(normal(random)));
  return x;
}

Moments one_by_one(const std::vector<float>& x, std::size_t begin, std::size_t end) {
  Moments m;
  for (std::size_t i = begin; i < end; ++i) m.add(x[i]);
  return m;
}

void expect_close(const Moments& a, const Moments& b, double relative) {
  EXPECT_EQ(a.count, b.count);
  EXPECT_NEAR(a.mean, b.mean, relative * std::abs(b.mean));
  EXPECT_NEAR(a.m2, b.m2, relative * b.m2);
  // The third sum of a symmetric sample is near zero: its scale is that of the second.
  EXPECT_NEAR(a.m3, b.m3, relative * (std::abs(b.m3) + b.m2));
  EXPECT_NEAR(a.m4, b.m4, relative * b.m4);
}

TEST(Moments, OfOneToFourAreThoseOnPaper) {
  const std::vector<float> x = {1, 2, 3, 6};  // mean 3, deviations -2 -1 0 3
  const Moments m = moments_of(x);
  EXPECT_EQ(m, (Moments{4, 3, 14, 18, 98}));
  EXPECT_DOUBLE_EQ(m.variance(), 3.5);
  EXPECT_DOUBLE_EQ(m.sample_variance(), 14.0 / 3);
  expect_close(one_by_one(x, 0, 4), m, 1e-14);
}

TEST(Moments, SurviveAMeanOf14600WithADeviationOf1) {
  const std::vector<float> x = normal_values(20000, 14600, 1, 7);
  const Moments exact = moments_of(x);
  EXPECT_NEAR(exact.variance(), 1, 0.03);
  EXPECT_NEAR(exact.m4 / exact.count / (exact.variance() * exact.variance()), 3, 0.15);
  Moments merged;
  for (std::size_t i = 0; i < x.size(); i += 137) {
    merged = merge(merged, one_by_one(x, i, std::min(i + 137, x.size())));
  }
  expect_close(merged, exact, 1e-9);
}

TEST(Moments, DoNotDependOnTheOrderOfMerging) {
  const std::vector<float> x = normal_values(3000, 0.3, 2, 11);
  std::vector<Moments> parts;
  for (std::size_t i = 0; i < x.size();) {
    const std::size_t n = 1 + (i * 7919) % 61;  // uneven pieces
    const std::size_t end = std::min(i + n, x.size());
    parts.push_back(one_by_one(x, i, end));
    i = end;
  }
  Moments forward, backward;
  for (const Moments& m : parts) forward = merge(forward, m);
  for (auto m = parts.rbegin(); m != parts.rend(); ++m) backward = merge(*m, backward);
  while (parts.size() > 1) {  // and as a tree
    std::vector<Moments> next;
    for (std::size_t i = 0; i < parts.size(); i += 2) {
      next.push_back(i + 1 < parts.size() ? merge(parts[i + 1], parts[i]) : parts[i]);
    }
    parts = next;
  }
  expect_close(backward, forward, 1e-12);
  expect_close(parts.front(), forward, 1e-12);
}

TEST(Moments, OfNothingAreTheNeutralElement) {
  const Moments some = moments_of(std::vector<float>{2, 5});
  EXPECT_EQ(merge(some, Moments{}), some);
  EXPECT_EQ(merge(Moments{}, some), some);
  EXPECT_EQ(moments_of({}), Moments{});
  EXPECT_TRUE(std::isnan(Moments{}.variance()));
  EXPECT_TRUE(std::isnan(moments_of(std::vector<float>{3}).sample_variance()));
}

}  // namespace
}  // namespace sinkscope
