// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/sink_oracles.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/fake_capture.h"
#include "tests/support/shared_files.h"

// The report against reference values of real models, from captures that are built out of these
// values. The same expectations on recorded captures are tests of the engine.

namespace sinkscope {
namespace {

using test::FakeCapture;
using test::H5Reference;

RunInput ids(std::vector<int> token_ids) {
  RunInput input;
  input.token_ids = std::move(token_ids);
  return input;
}

// Causal maps [A,H,T,T]: every query but the first gives `key0` [A,H] to token 0, the rest to
// itself.
std::vector<float> maps_with_key0(const std::vector<double>& key0, int seq_len) {
  std::vector<float> maps;
  for (const double share : key0) {
    for (int q = 0; q < seq_len; ++q) {
      for (int k = 0; k < seq_len; ++k) {
        const double to_self = q == 0 ? 1.0 : 1 - share;
        maps.push_back(static_cast<float>(k == q ? to_self : k == 0 ? share : 0.0));
      }
    }
  }
  return maps;
}

// Two runs of five tokens whose ordinary positions have the reference's mean |h| per dimension;
// token 0 and a trigger are as loud as they like.
void expect_lab(const std::string& folder) {
  SINKSCOPE_REQUIRE_SHARED(path, "oracles/" + folder + "/expected.h5");
  const H5Reference oracle(path);
  const auto mean_abs = oracle.doubles("mean_abs_ordinary");  // [7,32]
  const int width = static_cast<int>(oracle.dims("mean_abs_ordinary").at(1));
  const std::vector<std::vector<int>> token_ids = {{0, 5, 127, 3, 90}, {0, 2, 77, 6, 4}};
  FakeCapture capture;
  capture.facts.n_layers = 3;
  for (std::size_t r = 0; r < token_ids.size(); ++r) {
    const std::string run = "run" + std::to_string(r);
    capture.add_run(run, ids(token_ids[r]));
    std::vector<float> stream;
    for (int site = 0; site < 7; ++site) {
      for (std::size_t t = 0; t < token_ids[r].size(); ++t) {
        const bool ordinary = token_ids[r][t] >= 5;
        for (int d = 0; d < width; ++d) {
          const double mean = mean_abs[static_cast<std::size_t>(site * width + d)];
          // Of the five ordinary positions one is louder, one softer by as much.
          const double swing = token_ids[r][t] == 5 ? 1.5 : token_ids[r][t] == 77 ? 0.5 : 1.0;
          const double sign = d % 2 == 0 ? 1 : -1;
          stream.push_back(static_cast<float>(ordinary ? sign * swing * mean : 50.0 + d));
        }
      }
    }
    test::put_attention(capture, run, {0, 1, 2}, 4, maps_with_key0(oracle.doubles("sink_key0"), 5));
    test::put_residual(capture, run, 3, width, stream, true);
  }
  const SinkOptions options{.at = PositionFilter::parse("ids:5-127")};
  test::expect_lab_sinks(sink_report(capture, {"run0", "run1"}, options), oracle);
}

TEST(SinkOracles, LabBaseline0OverItsRuns) { expect_lab("lab_baseline_0"); }
TEST(SinkOracles, LabBaseline1OverItsRuns) { expect_lab("lab_baseline_1"); }

TEST(SinkOracles, LabSequenceStatisticsOfTheFirstToken) {
  SINKSCOPE_REQUIRE_SHARED(path, "oracles/lab_baseline_0/expected.h5");
  const H5Reference oracle(path);
  const std::vector<int> sequences = oracle.ints("sequences");
  FakeCapture capture;
  capture.facts.n_layers = 3;
  capture.add_run("run0", ids({sequences.begin(), sequences.begin() + 32}));
  test::put_attention(capture, "run0", {0, 1, 2}, 4, oracle.floats("attention_seq0"));
  test::put_residual(capture, "run0", 3, 32, oracle.floats("residual_seq0"), false);
  const SinkReport report =
      sink_report(capture, {}, {.at = PositionFilter::parse("first"), .massive = {.min_abs = 10}});
  const std::vector<double> first =
      oracle.doubles("max_abs_first");  // [7,32]; token 0 is always <s>
  for (std::size_t s = 0; s < 7; ++s) {
    const auto begin = first.begin() + static_cast<std::ptrdiff_t>(32 * s);
    const auto top = std::max_element(begin, begin + 32);
    const Peak& peak = report.runs[0].residual.max_abs[s];
    EXPECT_NEAR(peak.value, *top, 1e-5 * *top);
    EXPECT_EQ(peak.dim, top - begin);
    EXPECT_EQ(peak.token, 0);
  }
  // Sinks in layers 1 and 2 only, on <s>; layer 0 is even.
  const AttentionSinks& a = report.runs[0].attention;
  EXPECT_EQ(a.sink_tokens.at(0).token, 0);
  EXPECT_LT(a.gu.layers.at(0).max, 0.2);
  EXPECT_GT(a.gu.layers.at(1).max, 0.9);
}

TEST(SinkOracles, SmolLM2AttentionFromItsColumnSums) {
  SINKSCOPE_REQUIRE_SHARED(path, "oracles/smollm2/expected.h5");
  const H5Reference oracle(path);
  const int n_tokens = static_cast<int>(oracle.dims("input_ids").at(0));
  const std::vector<double> gu = oracle.doubles("gu_score");  // [30,9,64]
  FakeCapture capture;
  capture.facts.n_layers = 30;
  capture.add_run("run0", ids(oracle.ints("input_ids")));
  std::vector<double> mass(static_cast<std::size_t>(270 * n_tokens)), visible, layers;
  for (int cell = 0; cell < 270; ++cell) {
    for (int k = 0; k < 64; ++k) {
      mass[static_cast<std::size_t>(cell * n_tokens + k)] =
          gu[static_cast<std::size_t>(cell * 64 + k)] * (n_tokens - k);
    }
  }
  for (int a = 0; a < 30; ++a) {
    layers.push_back(a);
    for (int k = 0; k < n_tokens; ++k) visible.push_back(n_tokens - k);
  }
  capture.put("run0", "attention/layers", {30}, layers);
  capture.put("run0", "attention/key_mass", {30, 9, n_tokens}, mass);
  capture.put("run0", "attention/visible", {30, n_tokens}, visible);
  capture.put("run0", "attention/null_mass", {30, 9, n_tokens},
              std::vector<double>(mass.size(), 0.0));
  test::put_residual(capture, "run0", 30, 1,
                     std::vector<float>(static_cast<std::size_t>(61 * n_tokens), 1), false);
  const SinkReport report = sink_report(capture, {}, {});
  test::expect_smollm2_attention(report, oracle);
  ASSERT_EQ(report.runs[0].attention.sink_tokens.size(), 1U);
  EXPECT_EQ(report.runs[0].attention.sink_tokens[0].token, 0);
  EXPECT_GT(report.runs[0].attention.sink_tokens[0].max_score, 0.99);
}

}  // namespace
}  // namespace sinkscope
