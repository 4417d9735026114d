// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/snapshot/norms_snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "tests/support/fake_capture.h"

namespace sinkscope {
namespace {

using ::testing::ElementsAre;

test::FakeCapture capture_of() {
  test::FakeCapture capture;
  capture.facts.name = "tiny";
  capture.facts.n_layers = 2;
  capture.add_run("run0", {});
  test::put_norm(capture, "run0", "ln1", {0, 1}, {1, 1, 1.5, 1, 1, -0.004, 1.25, 8});
  test::put_norm(capture, "run0", "ln_final", {-1}, {2, 2, 4});
  return capture;
}

TEST(NormsSnapshot, ShowsMagnitudesAndBoxesTheSignedExtremes) {
  NormsRequest request;
  request.run = "run0";
  request.roles = {"ln1"};
  request.n_starred = 2;
  const auto snapshot = read_norms_snapshot(capture_of(), request);
  ASSERT_EQ(snapshot.strips.size(), 1U);
  const NormStrip& strip = snapshot.strips.front();
  EXPECT_EQ(strip.title, "Attention pre-norm gain");
  EXPECT_EQ(strip.map.rows(), 2);
  EXPECT_EQ(strip.map.cols(), 4);
  EXPECT_FLOAT_EQ(static_cast<float>(strip.map.at(1, 1)), 0.004F);
  EXPECT_THAT(strip.starred, ElementsAre(1, 3));
  ASSERT_EQ(strip.boxes.size(), 2U);
  EXPECT_EQ(strip.boxes[0].row, 1);
  EXPECT_EQ(strip.boxes[0].dim, 1);
  EXPECT_FLOAT_EQ(static_cast<float>(strip.boxes[0].value), -0.004F);
  EXPECT_EQ(strip.boxes[1].dim, 3);
  EXPECT_EQ(strip.boxes[1].value, 8);
}

TEST(NormsSnapshot, OverTheMedianOfItsLayer) {
  NormsRequest request;
  request.run = "run0";
  request.view = GainView::over_median;
  const auto snapshot = read_norms_snapshot(capture_of(), request);
  ASSERT_EQ(snapshot.strips.size(), 2U);
  const NormStrip& last = snapshot.strips[1];
  EXPECT_EQ(last.role, "ln_final");
  EXPECT_EQ(last.map.at(0, 0), 1) << "the median is 2";
  EXPECT_EQ(last.map.at(0, 2), 2);
  EXPECT_EQ(snapshot.view_text, "effective gain / median of its layer");
}

TEST(NormsSnapshot, AGainInFrontOfANormIsAStripOfItsOwn) {
  test::FakeCapture capture = capture_of();
  capture.put("run0", "norm/ln1/pre_gain", {2, 4}, {1, 1, 1, 7.19, 1, 1, 1, 1});
  NormsRequest request;
  request.run = "run0";
  const auto snapshot = read_norms_snapshot(capture, request);
  ASSERT_EQ(snapshot.strips.size(), 3U);
  EXPECT_EQ(snapshot.strips[1].role, "ln1/pre_gain");
  EXPECT_EQ(snapshot.strips[1].title, "Attention pre-norm, gain in front of it");
  EXPECT_FLOAT_EQ(static_cast<float>(snapshot.strips[1].map.at(0, 3)), 7.19F);
  EXPECT_EQ(read_run_facts(capture, "run0").norm_roles,
            (std::vector<std::string>{"ln1", "ln1/pre_gain", "ln_final"}));
}

TEST(NormsSnapshot, SaysWhichRoleIsNotThere) {
  NormsRequest request;
  request.run = "run0";
  request.roles = {"q_norm"};
  EXPECT_THROW(read_norms_snapshot(capture_of(), request), Error);
}

}  // namespace
}  // namespace sinkscope
