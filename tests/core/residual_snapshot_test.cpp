// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/snapshot/residual_snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "tests/support/fake_capture.h"

namespace sinkscope {
namespace {

using ::testing::ElementsAre;

constexpr int kL = 2, kS = 2 * kL + 1, kT = 3, kD = 4;

// Dimension 2 is huge on the first token, dimension 1 on the others; the sign alternates by site.
float value(int site, int token, int dim) {
  const float sign = site % 2 == 0 ? -1.0F : 1.0F;
  if (dim == 2) return sign * (token == 0 ? 1000.0F + static_cast<float>(site) : 0.5F);
  if (dim == 1) return sign * (token == 0 ? 1.0F : 50.0F);
  return sign * static_cast<float>(1 + dim + token);
}

test::FakeCapture capture_of() {
  test::FakeCapture capture;
  capture.facts.name = "tiny";
  capture.facts.n_layers = kL;
  capture.facts.n_heads = 1;
  capture.facts.d_model = kD;
  RunInput input;
  input.token_ids = {7, 8, 9};
  capture.add_run("run0", input);
  std::vector<float> stream;
  std::vector<double> mean, rest;
  for (int s = 0; s < kS; ++s)
    for (int t = 0; t < kT; ++t)
      for (int d = 0; d < kD; ++d) stream.push_back(value(s, t, d));
  for (const int s : {0, 2, 4})
    for (int d = 0; d < kD; ++d) {
      const double first = std::abs(value(s, 0, d));
      const double others = std::abs(value(s, 1, d)) + std::abs(value(s, 2, d));
      mean.push_back((first + others) / 3);
      rest.push_back(others / 2);
    }
  test::put_residual(capture, "run0", kL, kD, stream, true);
  capture.put("run0", "residual/window", {kS, 2, kD}, {});
  std::vector<double> window;
  for (int s = 0; s < kS; ++s)
    for (int t = 0; t < 2; ++t)
      for (int d = 0; d < kD; ++d) window.push_back(value(s, t, d));
  capture.put("run0", "residual/window", {kS, 2, kD}, window);
  capture.put("run0", "residual/abs_mean", {kL + 1, kD}, mean);
  capture.put("run0", "residual/abs_mean_rest", {kL + 1, kD}, rest);
  return capture;
}

TEST(ResidualSnapshot, SortsDimensionsWithAndWithoutTheFirstToken) {
  const auto capture = capture_of();
  ResidualRequest request;
  request.run = "run0";
  const auto sorted = read_residual(capture, request);
  EXPECT_THAT(sorted.dims, ElementsAre(2, 1, 3, 0));
  request.order = DimOrder::sorted_without_first;
  EXPECT_THAT(read_residual(capture, request).dims, ElementsAre(1, 3, 0, 2));
  request.order = DimOrder::natural;
  EXPECT_THAT(read_residual(capture, request).dims, ElementsAre(0, 1, 2, 3));
  request.order = DimOrder::given;
  request.given_order = {3, 0};
  const auto given = read_residual(capture, request);
  EXPECT_THAT(given.dims, ElementsAre(3, 0));
  EXPECT_FLOAT_EQ(static_cast<float>(given.map.at(2, 0)), 1 + 3 + 2);
  request.given_order = {kD};
  EXPECT_THROW(read_residual(capture, request), Error);
}

TEST(ResidualSnapshot, TheAverageIsOfMagnitudesOverTheBlockStates) {
  ResidualRequest request;
  request.run = "run0";
  request.n_dims = 2;
  const auto snapshot = read_residual(capture_of(), request);
  EXPECT_EQ(snapshot.title, "mean |x| over 3 block states");
  EXPECT_EQ(snapshot.map.rows(), kT);
  EXPECT_EQ(snapshot.map.cols(), 2);
  EXPECT_NEAR(snapshot.map.at(0, 0), 1002, 1e-3) << "sites 0, 2 and 4";
  EXPECT_NEAR(snapshot.map.at(2, 1), 50, 1e-4);
  EXPECT_EQ(snapshot.full_order.size(), 4U);
  // Of raw states: larger than the largest average.
  EXPECT_EQ(snapshot.max_abs, (Peak{1004, 0, 2}));
  EXPECT_EQ(snapshot.max_site, "blocks.1.hook_resid_post");
  // n = round(0.004), at least 1: dimension 2 alone. Its mean is 334.33, the others' 33.67, 5, 2.
  const double mean2 = (1002 + 0.5 + 0.5) / 3, mean1 = (1 + 50 + 50) / 3.0;
  EXPECT_EQ(snapshot.first_permille_count, 1);
  EXPECT_NEAR(snapshot.first_permille_ratio, 1000 * mean2 / (mean2 + mean1 + 5 + 2), 1e-6);
  EXPECT_NEAR(snapshot.first_permille_ratio_without_first, 1000 * 50 / (50 + 5.5 + 2.5 + 0.5),
              1e-6);
}

TEST(ResidualSnapshot, OneSiteKeepsItsSigns) {
  ResidualRequest request;
  request.run = "run0";
  request.site = "blocks.0.hook_resid_post";
  request.order = DimOrder::natural;
  const auto snapshot = read_residual(capture_of(), request);
  EXPECT_EQ(snapshot.source, ResidualSource::stream);
  EXPECT_EQ(snapshot.source_text, "all tokens");
  EXPECT_EQ(snapshot.map.at(0, 2), -1002);
  EXPECT_EQ(snapshot.map.at(2, 0), -3);
  EXPECT_EQ(snapshot.max_abs.value, 1002);
  EXPECT_THAT(snapshot.token_labels, ElementsAre("t0", "t1", "t2"));
  request.site = "blocks.7.hook_resid_post";
  EXPECT_THROW(read_residual(capture_of(), request), Error);
}

TEST(ResidualSnapshot, TheWindowIsSaidToBeAPart) {
  ResidualRequest request;
  request.run = "run0";
  request.source = ResidualSource::window;
  const auto snapshot = read_residual(capture_of(), request);
  EXPECT_EQ(snapshot.source_text, "first 2 of 3 tokens");
  EXPECT_EQ(snapshot.map.rows(), 2);
  request.n_tokens = 1;
  EXPECT_EQ(read_residual(capture_of(), request).map.rows(), 1);
}

}  // namespace
}  // namespace sinkscope
