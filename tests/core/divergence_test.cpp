// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/compare/divergence.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace sinkscope {
namespace {

using ::testing::HasSubstr;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

RunDivergence run_of(const std::vector<int>& ids, const std::vector<float>& a,
                     const std::vector<float>& b, const std::vector<float>& kl) {
  RunDivergence run;
  run.input.token_ids = ids;
  for (const int id : ids) run.input.token_text.push_back("t" + std::to_string(id));
  run.loss_a = a;
  run.loss_b = b;
  run.kl = kl;
  return run;
}

// Two runs of unequal length; means are over positions, not over runs.
ModelDivergence sample() {
  ModelDivergence all{"a", "b", {}};
  all.runs.push_back(run_of({5, 6, 7, 8}, {1, 2, 3}, {2, 2, 5}, {0.5F, 0.25F, 2}));
  all.runs.push_back(run_of({9, 4}, {6}, {7}, {2}));
  all.runs.back().input.name = "x,y";
  return all;
}

TEST(Divergence, MeansAreOverAllPositionsAndTheFirstOfEqualsIsNamed) {
  const DivergenceSummary s = summary_of(sample().runs);
  EXPECT_EQ(s.n_positions, 4);
  EXPECT_DOUBLE_EQ(s.mean_kl, (0.5 + 0.25 + 2 + 2) / 4);
  EXPECT_DOUBLE_EQ(s.max_kl, 2);
  EXPECT_EQ(s.max_run, 0);
  EXPECT_EQ(s.max_token, 2);
  EXPECT_DOUBLE_EQ(s.mean_loss_a, 3);
  EXPECT_DOUBLE_EQ(s.mean_loss_b, 4);
}

TEST(Divergence, WhatIsNotFiniteIsCountedAndNotAveraged) {
  ModelDivergence all = sample();
  all.runs[0].kl = {kNaN, 0.25F, std::numeric_limits<float>::infinity()};
  const DivergenceSummary s = summary_of(all.runs);
  EXPECT_EQ(s.n_positions, 4);
  EXPECT_DOUBLE_EQ(s.mean_kl, (0.25 + 2) / 2);
  EXPECT_EQ(s.max_run, 1);
  EXPECT_EQ(divergence_json(all)["non_finite_values"], 2);
  EXPECT_TRUE(std::isnan(summary_of(std::vector{run_of({3}, {}, {}, {})}).mean_kl));
}

TEST(Divergence, JsonNamesTheRunOfEachMaximum) {
  const auto json = divergence_json(sample());
  EXPECT_EQ(json["schema"], "sinkscope.compare_kl/1");
  EXPECT_EQ(json["kl"]["at"]["run"], "run0");
  EXPECT_EQ(json["kl"]["at"]["token"], 2);
  EXPECT_NEAR(json["perplexity"]["b"].get<double>(), std::exp(4.0), 1e-9);
  EXPECT_EQ(json["runs"][1]["kl"]["at"]["run"], "run1");
  EXPECT_EQ(json["runs"][1]["kl"]["at"]["token"], 0);
  EXPECT_EQ(json["runs"][0]["per_token"]["kl"].size(), 3U);
  EXPECT_TRUE(divergence_json({"a", "b", {run_of({3}, {}, {}, {})}})["kl"]["mean"].is_null());
}

TEST(Divergence, CsvHasARowAPositionAndTheTextTheLargest) {
  EXPECT_EQ(divergence_csv(sample()),
            "run,name,position,token_id,token,loss_a,loss_b,kl\n"
            "run0,,0,5,t5,1,2,0.5\nrun0,,1,6,t6,2,2,0.25\nrun0,,2,7,t7,3,5,2\n"
            "run1,\"x,y\",0,9,t9,6,7,2\n");
  const std::string text = divergence_text(sample());
  EXPECT_THAT(text, HasSubstr("4 scored positions of 2 runs"));
  EXPECT_THAT(text, HasSubstr("KL(A || B)  mean 1.188   max 2"));
  EXPECT_LT(text.find("run0 token 2 \"t7\""), text.find("run1 \"x,y\" token 0"));
}

}  // namespace
}  // namespace sinkscope
