// SPDX-License-Identifier: GPL-3.0-or-later
// Gates, sink shares, mixes over depth and states of linear attention, on values known on paper.
#include "core/mechanisms.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/sink_report.h"
#include "core/snapshot/norms_snapshot.h"
#include "core/snapshot/overview_snapshot.h"
#include "tests/support/fake_capture.h"

namespace sinkscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Dimension 0: |y| = 1, 2, 3, 4 with gates that rise with it; 1: that fall; 2: a gate that does not
// vary; 3: y is 2, −2, 2, −2 beside gates .1 .2 .2 .1, uncorrelated magnitudes.
TEST(MechanismMetrics, GateCorrelationIsThatOfMagnitudesInFrontOfTheGate) {
  const float gates[4][4] = {{0.2F, 0.8F, 0.5F, 0.1F},
                             {0.4F, 0.6F, 0.5F, 0.2F},
                             {0.6F, 0.4F, 0.5F, 0.2F},
                             {0.8F, 0.2F, 0.5F, 0.1F}};
  const float y[4][4] = {{1, 1, 1, 2}, {-2, 2, 5, -2}, {3, -3, 2, 2}, {-4, 4, 3, -2}};
  float gated[4][4], gate[4][4];
  for (int t = 0; t < 4; ++t)
    for (int d = 0; d < 4; ++d) {
      gate[t][d] = gates[t][d];
      gated[t][d] = y[t][d] * gates[t][d];
    }
  const std::vector<double> corr = gate_correlation(gated[0], gate[0], 4, 4);
  EXPECT_NEAR(corr[0], 1, 1e-6);
  EXPECT_NEAR(corr[1], -1, 1e-6);
  EXPECT_TRUE(std::isnan(corr[2]));
  EXPECT_TRUE(std::isnan(corr[3])) << "|y| does not vary";
  EXPECT_TRUE(std::isnan(gate_correlation(gated[0], gate[0], 1, 4)[0])) << "one row";
}

// One-hot and uniform rows: exp(H) is 1 and 4.
TEST(MechanismMetrics, DepthUseOfKnownRows) {
  const std::vector<float> rows = {0, 0, 0, 1, 0.25F, 0.25F, 0.25F, 0.25F};
  const DepthUse use = depth_use(rows, 2, 4);
  EXPECT_THAT(use.mean, ElementsAre(0.125, 0.125, 0.125, 0.625));
  EXPECT_DOUBLE_EQ(use.top1, 0.625);
  EXPECT_NEAR(use.effective_branches, 2.5, 1e-12);
  EXPECT_DOUBLE_EQ(use.embedding, 0.125);
  EXPECT_DOUBLE_EQ(use.newest, 0.625);
  EXPECT_DOUBLE_EQ(use.concentrated, 0.5);
}

// Three blocks, 2 heads, 5 dimensions, 4 tokens. Attention in blocks 0 and 2, block 1 is linear
// attention with 3 heads. Block 2 has three inputs of two sources, the final norm one of three.
test::FakeCapture capture_of() {
  constexpr int T = 4, H = 2, L = 3, D = 5;
  test::FakeCapture capture;
  capture.facts.name = "tiny";
  capture.facts.n_layers = L;
  capture.facts.n_heads = H;
  capture.facts.d_model = D;
  capture.n_layers_done = L;
  RunInput input;
  input.token_ids.assign(T, 3);
  capture.add_run("run0", input);
  std::vector<float> maps;  // all to the own key
  for (int a = 0; a < 2 * H; ++a)
    for (int q = 0; q < T; ++q)
      for (int k = 0; k < T; ++k) maps.push_back(q == k ? 0.75F : 0);
  test::put_attention(capture, "run0", {0, 2}, H, maps);
  test::put_residual(capture, "run0", L, D, std::vector<float>((2 * L + 1) * T * D, 0.5F), false);
  test::put_norm(capture, "run0", "ln1", {0, 1, 2}, std::vector<double>(3 * D, 1.5));
  std::vector<double> null(2 * H * T, 0.25);
  std::fill(null.begin(), null.begin() + T, 0.5);
  capture.put("run0", "attention/null_mass", {2, H, T}, null);

  // Gates of the norm of block 1: 0.2 on token 0, 0.4 on the three others, dimension 4 apart.
  const std::string gate = "stats/ln1.hook_gate/";
  capture.put("run0", gate + "layers", {1}, {1});
  capture.put("run0", gate + "dim_first/count", {1, D}, {1, 1, 1, 1, 1});
  capture.put("run0", gate + "dim_first/mean", {1, D}, {0.2, 0.2, 0.2, 0.2, 1});
  capture.put("run0", gate + "dim_rest/count", {1, D}, {3, 3, 3, 3, 3});
  capture.put("run0", gate + "dim_rest/mean", {1, D}, {0.4, 0.4, 0.4, 0.4, 1});
  capture.put("run0", gate + "corr", {1, D}, {0.5, 0.5, -0.25, 0.25, kNaN});

  // The gate of the attention output: heads of 3 channels in block 0, of 2 in block 2, not padded.
  const std::string attn = "stats/attn.hook_gate/";
  capture.put("run0", attn + "layers", {2}, {0, 2});
  for (const char* part : {"dim_first", "dim_rest"}) {
    const std::string group = attn + part;
    capture.put("run0", group + "/count", {2, 6}, {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, kNaN, kNaN});
    capture.put("run0", group + "/mean", {2, 6},
                {0.1, 0.2, 0.3, 0.7, 0.8, 0.9, 0.5, 0.7, 0.2, 0.2, kNaN, kNaN});
  }

  capture.put("run0", "residual/block_layers", {2}, {0, 2});
  std::vector<double> weights;  // [1, 3, T, 3]
  for (int q = 0; q < 3; ++q)
    for (int t = 0; t < T; ++t)
      for (const double w : {0.25 * q, 1 - 0.25 * q, kNaN}) weights.push_back(w);
  capture.put("run0", "taps/depth_attn.hook_weights/layers", {1}, {2});
  capture.put("run0", "taps/depth_attn.hook_weights/values", {1, 3, T, 3}, weights);
  weights.clear();
  for (int t = 0; t < T; ++t)
    for (const double w : {0.5, 0.125, 0.375}) weights.push_back(w);
  capture.put("run0", "taps/depth_final.hook_weights/layers", {1}, {-1});
  capture.put("run0", "taps/depth_final.hook_weights/values", {1, 1, T, 3}, weights);

  capture.put("run0", "taps/linear.hook_state_norm/layers", {1}, {1});
  capture.put("run0", "taps/linear.hook_state_norm/values", {1, 3, T},
              {1, 2, 3, 4, 2, 2, 2, 2, 0, 0, 0, 8});
  return capture;
}

TEST(Mechanisms, OfARunThatHasThemAll) {
  const Mechanisms m = read_mechanisms(capture_of(), "run0", 3);
  ASSERT_EQ(m.norm_gates.size(), 1U);
  EXPECT_NEAR(m.norm_gates[0].mean[0], 0.35, 1e-12);
  EXPECT_EQ(m.norm_gates[0].corr[2], -0.25);
  EXPECT_THAT(m.gate_layers, ElementsAre(0, 2));
  EXPECT_NEAR(m.attn_gate(0, 0), 0.2, 1e-12);
  EXPECT_NEAR(m.attn_gate(0, 1), 0.8, 1e-12);
  EXPECT_NEAR(m.attn_gate(1, 0), 0.6, 1e-12);
  EXPECT_NEAR(m.attn_gate(1, 1), 0.2, 1e-12);
  EXPECT_THAT(m.sink_layers, ElementsAre(0, 2));
  EXPECT_EQ(m.sink_share(0, 0), 0.5);
  EXPECT_EQ(m.sink_share(1, 1), 0.25);
  EXPECT_THAT(m.block_layers, ElementsAre(0, 2));
  ASSERT_EQ(m.depth.size(), 4U);
  EXPECT_EQ(m.depth[1].target, "blocks.2.depth_attn (keys)");
  EXPECT_THAT(m.depth[1].use.mean, ElementsAre(0.25, 0.75));
  EXPECT_EQ(m.depth[3].target, "depth_final");
  EXPECT_THAT(m.depth[3].use.mean, ElementsAre(0.5, 0.125, 0.375));
  EXPECT_THAT(m.linear_layers, ElementsAre(1));
  EXPECT_EQ(m.state_norm(0, 0), 2.5);
  EXPECT_EQ(m.last_state_norm(0, 2), 8);
}

// Blocks that are not whole, and what lies behind the last one, are left out.
TEST(Mechanisms, OfAnUnfinishedRunWholeBlocksOnly) {
  test::FakeCapture capture = capture_of();
  capture.is_complete = false;
  const Mechanisms m = read_mechanisms(capture, "run0", 1);
  EXPECT_TRUE(m.norm_gates.empty());
  EXPECT_THAT(m.gate_layers, ElementsAre(0));
  EXPECT_TRUE(m.depth.empty());
  EXPECT_TRUE(m.linear_layers.empty());
}

// Taps may have any shape in a stranger's file, and a model no heads.
TEST(Mechanisms, OfAStrangersShapesAreRefused) {
  struct Case {
    const char* tap;
    std::vector<std::int64_t> dims;
    const char* says;
  };
  for (const Case& c : {
           Case{"linear.hook_state_norm", {1}, "expected [N, 16384 at most, 4], found [1]"},
           Case{"linear.hook_state_norm", {1, 1LL << 40, 0}, "found [1, 1099511627776, 0]"},
           Case{"linear.hook_state_norm", {1, 16'385, 4}, "found [1, 16385, 4]"},
           Case{"depth_attn.hook_weights", {1, 4, 4, 3}, "expected [N, 3 at most, 4, 4 at most]"},
           Case{"depth_attn.hook_weights", {1, 3, 5, 3}, "found [1, 3, 5, 3]"},
           Case{"depth_final.hook_weights", {1, 1, 4, 5}, "found [1, 1, 4, 5]"},
           Case{"depth_final.hook_weights", {1, 1, 0, 0x7fffffff}, "found [1, 1, 0, 2147483647]"},
       }) {
    test::FakeCapture capture = capture_of();
    std::int64_t n = 1;
    for (const std::int64_t dim : c.dims) n *= dim;
    capture.put("run0", std::string("taps/") + c.tap + "/values", c.dims,
                std::vector<double>(static_cast<std::size_t>(n), 0.5));
    try {
      read_mechanisms(capture, "run0", 3);
      ADD_FAILURE() << c.tap << ": expected an Error";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::corrupt);
      EXPECT_THAT(error.what(), HasSubstr(c.says));
    }
  }
  test::FakeCapture without_heads = capture_of();
  without_heads.facts.n_heads = 0;
  EXPECT_EQ(read_mechanisms(without_heads, "run0", 3).attn_gate.cols(), 0);
}

TEST(Mechanisms, StandInAllThreeFormsOfTheReport) {
  const SinkReport report = sink_report(capture_of(), {}, {});
  const nlohmann::json json = sink_report_json(report);
  const auto& m = json["runs"][0]["mechanisms"];
  EXPECT_NEAR(m["norm_gates"][0]["mean"].get<double>(), (4 * 0.35 + 1) / 5, 1e-12);
  EXPECT_EQ(m["norm_gates"][0]["max_dim"], 4);
  EXPECT_NEAR(m["norm_gates"][0]["corr"].get<double>(), 0.25, 1e-12) << "NaN is left out";
  EXPECT_EQ(m["sink_share"]["mean"][0][0], 0.5);
  EXPECT_EQ(m["depth"]["mixes"][3]["embedding"], 0.5);
  EXPECT_EQ(m["linear_attention"]["layers"][0], 1);
  EXPECT_TRUE(json["conventions"].contains("mechanisms.depth"));
  const std::string text = sink_report_text(report);
  for (const char* section : {"Norm gates", "Gate of the attention output", "Sink share",
                              "Attention over depth", "blocks.2.depth_attn (values)",
                              "States of linear attention", "no softmax attention in these layers"})
    EXPECT_THAT(text, HasSubstr(section));
  const std::string csv = sink_report_csv(report);
  for (const char* line :
       {"run0,attention_gate.mean,2,0,,,,0.6", "run0,sink_share.mean,0,0,,,,0.5,",
        "run0,depth.mean,,,depth_final,,2,0.375,",
        "run0,linear_attention.last_state_norm,1,2,,,,8,",
        "run0,norm_gate.max,1,,blocks.1.ln1.hook_gate,,4,1,"})
    EXPECT_THAT(csv, HasSubstr(line));
}

TEST(Mechanisms, AModelWithoutThemSaysNothing) {
  test::FakeCapture capture = capture_of();
  test::FakeCapture plain;
  plain.facts = capture.facts;
  plain.facts.n_layers = 1;
  RunInput input;
  input.token_ids.assign(4, 3);
  plain.add_run("run0", input);
  test::put_attention(plain, "run0", {0}, 2, std::vector<float>(2 * 16, 0.0F));
  plain.put("run0", "attention/null_mass", {1, 2, 4}, std::vector<double>(8, 0.0));
  test::put_residual(plain, "run0", 1, 5, std::vector<float>(3 * 4 * 5, 0.5F), false);
  const SinkReport report = sink_report(plain, {}, {});
  EXPECT_TRUE(report.runs[0].mechanisms.empty());
  EXPECT_FALSE(sink_report_json(report)["runs"][0].contains("mechanisms"));
}

TEST(Mechanisms, AreMapsOfTheOverview) {
  const auto snapshot = read_overview(capture_of(), {"run0"});
  ASSERT_EQ(snapshot.mechanisms.size(), 4U);
  const MechanismMap& depth = snapshot.mechanisms[2];
  EXPECT_EQ(depth.name, "Depth weights");
  EXPECT_THAT(depth.row_labels, ElementsAre("embedding", "sum 1", "newest sum"));
  EXPECT_THAT(depth.col_labels, ElementsAre("L2 attn q", "L2 attn k", "L2 attn v", "final"));
  EXPECT_EQ(depth.values.rows(), 3);
  EXPECT_EQ(depth.values.cols(), 4);
  // The newest sum of every mix is in the last row, what a mix does not have is empty.
  EXPECT_EQ(depth.values.at(0, 1), 0.25);
  EXPECT_TRUE(std::isnan(depth.values.at(1, 1)));
  EXPECT_EQ(depth.values.at(2, 1), 0.75);
  EXPECT_EQ(depth.values.at(1, 3), 0.125);
  const MechanismMap& states = snapshot.mechanisms[3];
  EXPECT_THAT(states.layers, ElementsAre(1));
  EXPECT_EQ(states.values.rows(), 3);
  EXPECT_FALSE(states.is_share);
  EXPECT_THAT(snapshot.stream_text, HasSubstr("restarts"));
}

TEST(Mechanisms, GatesAreStripsBehindTheirNorms) {
  NormsRequest request;
  request.run = "run0";
  const auto snapshot = read_norms_snapshot(capture_of(), request);
  ASSERT_EQ(snapshot.strips.size(), 2U);
  const NormStrip& strip = snapshot.strips[1];
  EXPECT_EQ(strip.role, "ln1/gate");
  EXPECT_EQ(strip.title, "Attention pre-norm, mean gate behind it");
  EXPECT_THAT(strip.layers, ElementsAre(1));
  EXPECT_NEAR(strip.map.at(0, 3), 0.35, 1e-6);
}

}  // namespace
}  // namespace sinkscope
