// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/snapshot/overview_snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/snapshot/compare_snapshot.h"
#include "tests/support/fake_capture.h"

namespace sinkscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kT = 12, kH = 2, kL = 3, kD = 5;

// Head (slot 1, head 1) gives 0.9 to key 0; all other heads spread evenly.
std::vector<float> maps() {
  std::vector<float> all;
  for (int a = 0; a < 3; ++a)
    for (int h = 0; h < kH; ++h)
      for (int q = 0; q < kT; ++q)
        for (int k = 0; k < kT; ++k) {
          const float even = 1.0F / static_cast<float>(q + 1);
          const bool sink = a == 1 && h == 1 && q > 0;
          all.push_back(k > q ? 0 : !sink ? even : k == 0 ? 0.9F : 0.1F / static_cast<float>(q));
        }
  return all;
}

test::FakeCapture capture_of() {
  test::FakeCapture capture;
  capture.facts.name = "tiny";
  capture.facts.n_layers = kL;
  capture.facts.n_heads = kH;
  capture.facts.d_model = kD;
  RunInput input;
  input.token_ids.assign(kT, 3);
  capture.add_run("run0", input);
  test::put_attention(capture, "run0", {0, 1, 2}, kH, maps());
  std::vector<float> stream;
  for (int s = 0; s < 2 * kL + 1; ++s)
    for (int t = 0; t < kT; ++t)
      for (int d = 0; d < kD; ++d)
        stream.push_back(t == 0 && d == 3 && s >= 2 ? 4000.0F
                                                    : 0.1F * static_cast<float>(1 + (t + d) % 3));
  test::put_residual(capture, "run0", kL, kD, stream, false);
  return capture;
}

TEST(OverviewSnapshot, ShowsHeadsDownAndLayersToTheRight) {
  const auto snapshot = read_overview(capture_of(), {"run0"});
  EXPECT_EQ(snapshot.gu.rows(), kH);
  EXPECT_EQ(snapshot.gu.cols(), 3);
  EXPECT_NEAR(snapshot.gu.at(1, 1), (1 + 11 * 0.9) / 12, 1e-6);
  EXPECT_LT(snapshot.gu.at(1, 0), 0.3);
  EXPECT_NEAR(snapshot.without_row0.at(1, 1), 0.9, 1e-6);
  EXPECT_THAT(snapshot.layers, ElementsAre(0, 1, 2));
  EXPECT_EQ(snapshot.sink_ratio.above, 1);
  EXPECT_NEAR(snapshot.max_score.values[1], (1 + 11 * 0.9) / 12, 1e-6);
}

TEST(OverviewSnapshot, LinesRunOverTheBlockStates) {
  const auto snapshot = read_overview(capture_of(), {"run0"});
  EXPECT_THAT(snapshot.max_abs.positions, ElementsAre(0, 1, 2, 3));
  // Site 2 is blocks.0.hook_resid_post, state 1; the mids are no states.
  EXPECT_NEAR(snapshot.max_abs.values[0], 0.3, 1e-6);
  EXPECT_EQ(snapshot.max_abs.values[1], 4000);
  EXPECT_EQ(snapshot.max_abs.values[3], 4000);
  EXPECT_NEAR(snapshot.median_abs.values[1], 0.2, 1e-6);
  EXPECT_THAT(snapshot.kurtosis.name, HasSubstr("Pearson"));
  EXPECT_GT(snapshot.kurtosis.values[1], 10 * snapshot.kurtosis.values[0]);
}

TEST(OverviewSnapshot, FindingsNameTheirCriterionAndWhereToGo) {
  const auto snapshot = read_overview(capture_of(), {"run0"});
  ASSERT_EQ(snapshot.findings.size(), 3U);
  EXPECT_THAT(snapshot.findings[0].sentence, HasSubstr("attention sink"));
  EXPECT_THAT(snapshot.findings[0].criterion, HasSubstr("0.3"));
  EXPECT_EQ(snapshot.findings[0].layer, 1);
  EXPECT_EQ(snapshot.findings[0].head, 1);
  EXPECT_EQ(snapshot.findings[1].dim, 3);
  EXPECT_EQ(snapshot.findings[1].token, 0);
  for (const Finding& finding : snapshot.findings) {
    EXPECT_FALSE(finding.criterion.empty()) << finding.sentence;
    EXPECT_EQ(finding.sentence.find('['), std::string::npos) << finding.sentence;
  }
}

TEST(OverviewSnapshot, WithoutAttentionTheMapIsEmpty) {
  test::FakeCapture capture = capture_of();
  test::FakeCapture bare;
  bare.facts = capture.facts;
  bare.add_run("run0", capture.input("run0"));
  test::put_residual(bare, "run0", kL, kD, std::vector<float>(7 * kT * kD, 0.5F), false);
  const auto snapshot = read_overview(bare, {"run0"});
  EXPECT_TRUE(snapshot.gu.empty());
  EXPECT_FALSE(snapshot.facts.has_attention);
  EXPECT_EQ(snapshot.max_abs.values.size(), 4U);
}

}  // namespace
}  // namespace sinkscope
