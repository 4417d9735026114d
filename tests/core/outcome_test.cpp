// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/what_if/outcome.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/support/fake_capture.h"

namespace sinkscope {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kEven = -1;

// One block, two heads, 5 dimensions. A head spreads evenly, or sends everything to one key as soon
// as it is there; the stream is ±1 but for one value at its last two sites or at the last one.
struct Side {
  int head0 = kEven, head1 = kEven;
  float outlier = 1;
  int token = 0, dim = 0, first_site = 1;
  double loss = 0;
  std::vector<double> kl = {};
};

void add_run(test::FakeCapture& capture, const std::string& name, int n_tokens, const Side& side) {
  RunInput input;
  for (int t = 0; t < n_tokens; ++t) {
    input.token_ids.push_back(t);
    input.token_text.push_back(t == 0 ? "<s>" : "w" + std::to_string(t));
  }
  if (name.ends_with("_edit0")) input.what_if = R"([{"edit":"residual.clip","limit":700}])";
  capture.add_run(name, input);
  std::vector<float> maps, stream;
  for (int sink : {side.head0, side.head1})
    for (int q = 0; q < n_tokens; ++q)
      for (int k = 0; k < n_tokens; ++k) {
        const float even = k <= q ? 1.0F / static_cast<float>(q + 1) : 0.0F;
        maps.push_back(sink == kEven || q < sink ? even : static_cast<float>(k == sink));
      }
  for (int site = 0; site < 3; ++site)
    for (int t = 0; t < n_tokens; ++t)
      for (int d = 0; d < 5; ++d) {
        const bool is_outlier = t == side.token && d == side.dim && site >= side.first_site;
        stream.push_back(is_outlier ? side.outlier : (t + d) % 2 == 0 ? 1.0F : -1.0F);
      }
  test::put_attention(capture, name, {0}, 2, maps);
  test::put_residual(capture, name, 1, 5, stream, false);
  capture.put(name, "logits/loss", {n_tokens - 1},
              std::vector<double>(static_cast<std::size_t>(n_tokens - 1), side.loss));
  if (!side.kl.empty()) capture.put(name, "compare/kl", {n_tokens}, side.kl);
}

// KL of T − 1 positions with a next token, and one that has none and does not count.
std::vector<double> kl_of(int n_tokens, double value) {
  std::vector<double> kl(static_cast<std::size_t>(n_tokens), value);
  kl.back() = 1e6;
  return kl;
}

// Prompts of 12 and 20 tokens.
test::FakeCapture two_unequal_runs() {
  test::FakeCapture capture;
  capture.facts.name = "fake";
  capture.facts.n_layers = 1;
  capture.facts.n_heads = 2;
  capture.facts.n_kv_heads = 1;
  capture.facts.d_model = 5;
  add_run(capture, "run0", 12, {.head1 = 0, .outlier = 5000, .dim = 4, .loss = 2});
  add_run(capture, "run1", 20, {.head1 = 0, .outlier = -6000, .dim = 4, .loss = 4});
  add_run(capture, "run0_edit0", 12,
          {.outlier = 700, .token = 3, .dim = 2, .first_site = 2, .loss = 3, .kl = kl_of(12, 0.5)});
  std::vector<double> kl = kl_of(20, 1);
  kl[7] = 3;
  add_run(capture, "run1_edit0", 20, {.head0 = 2, .loss = 4, .kl = kl});
  return capture;
}

double harmonic(int n) {
  double sum = 0;
  for (int i = 1; i <= n; ++i) sum += 1.0 / i;
  return sum;
}

Compared<double> metric(const WhatIfOutcome& outcome, const std::string& name) {
  for (const auto& [known, values] : outcome.metrics)
    if (known == name) return values;
  ADD_FAILURE() << "no metric " << name;
  return {};
}

// Loss and KL count positions, every other number counts runs.
TEST(WhatIfOutcome, PoolsPositionsForLossAndKlAndRunsForTheRest) {
  const WhatIfOutcome outcome = what_if_outcome(two_unequal_runs(), 0, {});
  EXPECT_DOUBLE_EQ(outcome.loss.baseline, (11 * 2 + 19 * 4) / 30.0);
  EXPECT_DOUBLE_EQ(outcome.loss.edited, (11 * 3 + 19 * 4) / 30.0);
  EXPECT_DOUBLE_EQ(outcome.kl_mean, (11 * 0.5 + 18 * 1 + 3) / 30.0);
  EXPECT_EQ(outcome.kl_max, 3);
  EXPECT_EQ(outcome.kl_max_run, 1);
  EXPECT_EQ(outcome.kl_max_token, 7);
  EXPECT_EQ(outcome.n_tokens, 32);
  EXPECT_EQ(metric(outcome, "tokens").baseline, 16);
  EXPECT_EQ(metric(outcome, "residual.max_abs.largest").baseline, (5000 + 6000) / 2.0);
  EXPECT_EQ(metric(outcome, "residual.max_abs.largest").edited, (700 + 1) / 2.0);
  EXPECT_DOUBLE_EQ(metric(outcome, "attention.gu.max").baseline, 1);
  EXPECT_NEAR(metric(outcome, "attention.gu.max").edited,
              (harmonic(12) / 12 + harmonic(20) / 20) / 2, 1e-7);
  ASSERT_EQ(outcome.runs.size(), 2U);
  EXPECT_EQ(outcome.runs[0].loss.edited, 3);
  EXPECT_EQ(outcome.runs[1].kl.size(), 19U);
}

TEST(WhatIfOutcome, SaysWhereTheOutliersOfAllRunsWereAndAre) {
  const WhatIfOutcome outcome = what_if_outcome(two_unequal_runs(), 0, {});
  const Outliers &before = outcome.outliers.baseline, &after = outcome.outliers.edited;
  EXPECT_EQ(before.max_abs[2].value, 6000);
  EXPECT_EQ(before.max_abs[2].run, 1);
  EXPECT_EQ(before.max_abs[2].dim, 4);
  EXPECT_EQ(after.max_abs[2].value, 700);
  EXPECT_EQ(after.max_abs[2].run, 0);
  EXPECT_EQ(after.max_abs[2].token, 3);
  ASSERT_EQ(before.sink_tokens.size(), 2U) << "one a run";
  EXPECT_EQ(before.sink_tokens[0].token, 0);
  EXPECT_EQ(before.sink_tokens[0].head, 1);
  ASSERT_EQ(after.sink_tokens.size(), 1U);
  EXPECT_EQ(after.sink_tokens[0].run, 1);
  EXPECT_EQ(after.sink_tokens[0].token, 2);
  EXPECT_EQ(after.sink_tokens[0].head, 0);
  ASSERT_EQ(before.massive.size(), 2U);
  EXPECT_EQ(before.massive[0].run, 1) << "the larger one first";
  EXPECT_TRUE(after.massive.empty());
  const std::string text = outcome_text(outcome);
  EXPECT_THAT(text, HasSubstr("of all 2 runs"));
  EXPECT_THAT(text, HasSubstr("6,000.0 at blocks.0.hook_resid_mid, run 1, token 0 \"<s>\", "
                              "dimension 4"));
  EXPECT_THAT(text, HasSubstr("700 at blocks.0.hook_resid_post, run 0, token 3 \"w3\", "
                              "dimension 2"));
  EXPECT_THAT(text, HasSubstr("run 1, token 2 \"w2\": 1 of 2 heads"));
}

TEST(WhatIfOutcome, WithoutASinkTheLargestScoreIsNamed) {
  test::FakeCapture capture;
  capture.facts = two_unequal_runs().facts;
  add_run(capture, "run0", 12, {.head1 = 0, .loss = 2});
  add_run(capture, "run0_edit0", 12, {.loss = 2, .kl = kl_of(12, 0)});
  const std::string text = outcome_text(what_if_outcome(capture, 0, {}));
  EXPECT_THAT(text, HasSubstr("no token gets more than 0.3 of a head; key 0 gets 0.2586 at most in "
                              "layer 0, head 0"));
  EXPECT_THAT(text, Not(HasSubstr("run 0, token")));
}

TEST(WhatIfOutcome, JsonAndCsvHoldEveryLayerHeadAndSite) {
  const WhatIfOutcome outcome = what_if_outcome(two_unequal_runs(), 0, {});
  const auto json = outcome_json(outcome);
  EXPECT_EQ(json["tables"]["layers"], nlohmann::json({0}));
  const auto& score = json["tables"]["quantities"]["attention.gu.score"];
  EXPECT_EQ(score["axis"], "layer_head");
  EXPECT_NEAR(score["baseline"][0][1], 1, 1e-7);
  EXPECT_NEAR(score["edited"][0][0], (harmonic(12) / 12 + 1.5 / 20) / 2, 1e-7);
  EXPECT_EQ(json["tables"]["quantities"]["residual.max_abs"]["edited"],
            nlohmann::json({1, 1, 350.5}));
  EXPECT_EQ(json["outliers"]["edited"]["attention_sinks"][0]["token"], 2);
  EXPECT_EQ(json["by_run"][1]["kl"]["max_token"], 7);
  EXPECT_EQ(json["max_abs"]["edited"][2]["run"], 0);
  const std::string csv = outcome_csv(outcome);
  EXPECT_THAT(csv, ::testing::StartsWith("run,quantity,layer,head,site,token,baseline,edited\n"));
  EXPECT_THAT(csv, HasSubstr("\nall,residual.max_abs.largest,,,,,5500,350.5\n"));
  EXPECT_THAT(csv, HasSubstr("\nall,residual.max_abs,,,blocks.0.hook_resid_post,,5500,350.5\n"));
  EXPECT_THAT(csv, HasSubstr("\nrun0,residual.max_abs,,,blocks.0.hook_resid_post,,5000,700\n"));
  EXPECT_THAT(csv, HasSubstr("\nrun1,kl,,,,7,,3\n"));
  EXPECT_THAT(csv, Not(HasSubstr("run1,kl,,,,19")));
  EXPECT_THAT(csv, HasSubstr("\nrun1,attention.gu.score,0,1,,,1,"));
}

// A quantity that only one side has is not paired with its neighbor in the list.
TEST(WhatIfOutcome, QuantitiesAreComparedByName) {
  test::FakeCapture capture = two_unequal_runs();
  test::FakeCapture without;
  without.facts = capture.facts;
  add_run(without, "run0", 12, {.head1 = 0, .loss = 2});
  RunInput input = capture.input("run0_edit0");
  without.add_run("run0_edit0", input);
  test::put_residual(without, "run0_edit0", 1, 5, std::vector<float>(3 * 12 * 5, 2), false);
  const WhatIfOutcome outcome = what_if_outcome(without, 0, {});
  EXPECT_EQ(metric(outcome, "residual.max_abs.largest").edited, 2);
  EXPECT_TRUE(std::isnan(metric(outcome, "attention.gu.max").edited));
  EXPECT_THAT(outcome_text(outcome), HasSubstr("no softmax attention was recorded"));
}

}  // namespace
}  // namespace sinkscope
