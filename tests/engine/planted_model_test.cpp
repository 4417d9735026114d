// SPDX-License-Identifier: GPL-3.0-or-later
// The sample model's outliers are known on paper; the numbers are those of sample_data/README.md.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>

#include "capture/checkpoint/model_files.h"
#include "capture/engine.h"
#include "capture/tokenizer/tokenizer.h"
#include "core/capture_reader.h"
#include "core/sink_report.h"
#include "tests/engine/captured.h"

namespace sinkscope {
namespace {

constexpr int kMassive = 37, kSteady = 11, kTokens = 64;
// The attention logit of <s> in blocks 2 and 3.
constexpr double kSinkLogit[2][4] = {{10, 8, 6, 0}, {0, 12, 7, 9}};

std::string planted_path() { return std::string(SINKSCOPE_SOURCE_DIR) + "/sample_data/planted"; }

// 1/T Σ_t e^s / (e^s + t)
double first_token_score_on_paper(double logit) {
  double sum = 0;
  for (int t = 0; t < kTokens; ++t) sum += 1 / (1 + t * std::exp(-logit));
  return sum / kTokens;
}

struct Planted {
  std::unique_ptr<ModelFiles> model = open_model(planted_path());
  std::unique_ptr<CaptureReader> reader;
  SinkReport report;
};

// One recording of 64 tokens with statistics only, shared by the tests.
const Planted& planted() {
  static const Planted recorded = [] {
    Planted made;
    const std::string text = "Nobody trained this model. What it does was written down by hand.";
    RunInput run;
    const auto tokenizer = open_tokenizer(*made.model);
    run.text = text.substr(0, kTokens - 1);
    const Encoding encoding = tokenizer->encode(run.text);
    run.token_ids = encoding.ids;
    run.bos_positions = encoding.bos_positions;
    run.token_text = tokenizer->labels(encoding.ids);
    CaptureRequest request;
    request.runs = {run};
    request.record.stream = false;
    request.device = "cpu";
    request.threads = test::test_threads();
    made.reader = CaptureReader::open(test::capture(*made.model, request));
    made.report = sink_report(*made.reader, {}, {});
    return made;
  }();
  return recorded;
}

const ResidualReport& residual() { return planted().report.runs.at(0).residual; }

TEST(PlantedModel, TokensAreBosAndBytes) {
  const RunInput& input = planted().report.runs.at(0).input;
  ASSERT_EQ(input.seq_len(), kTokens);
  EXPECT_EQ(input.token_ids[0], 256);
  EXPECT_EQ(input.token_ids[1], 'N');
  EXPECT_EQ(input.bos_positions, std::vector<int>{0});
}

TEST(PlantedModel, FirstTokenIsTheOnlySinkOfSixHeads) {
  const AttentionSinks& attention = planted().report.runs.at(0).attention;
  ASSERT_EQ(attention.sink_tokens.size(), 1u);
  EXPECT_EQ(attention.sink_tokens[0].token, 0);
  EXPECT_EQ(attention.sink_tokens[0].text, "<s>");
  EXPECT_TRUE(attention.sink_tokens[0].special);
  EXPECT_EQ(attention.gu.sink_ratio.above, 6);
  EXPECT_EQ(attention.gu.sink_ratio.cells, 16);
  for (int layer = 0; layer < 2; ++layer)
    for (int head = 0; head < 4; ++head)
      EXPECT_NEAR(attention.with_row0(layer + 2, head),
                  first_token_score_on_paper(kSinkLogit[layer][head]), 1e-3)
          << "block " << layer + 2 << " head " << head;
}

TEST(PlantedModel, ValueOfTheSinkIsZero) {
  const CaptureReader& reader = *planted().reader;
  const std::vector<float> norms = reader.read_f32("run0", "attention/value_norm");  // [4,2,T]
  ASSERT_EQ(norms.size(), 4u * 2u * kTokens);
  for (std::size_t row = 0; row < 8; ++row) {
    EXPECT_EQ(norms[row * kTokens], 0);
    EXPECT_GT(norms[row * kTokens + 1], 0.5f);
  }
}

TEST(PlantedModel, MassiveActivationStartsAfterBlockOne) {
  ASSERT_EQ(residual().sites.size(), 9u);
  for (std::size_t site = 0; site < 9; ++site) {
    const Peak& peak = residual().max_abs[site];
    const bool is_massive = site >= 4;  // blocks.1.hook_resid_post is the fifth
    EXPECT_EQ(peak.dim, is_massive ? kMassive : kSteady) << residual().sites[site];
    EXPECT_NEAR(std::abs(peak.value), is_massive ? 4096 : 32, is_massive ? 0.04 : 1e-3);
    if (is_massive) {
      EXPECT_EQ(peak.token, 0) << residual().sites[site];
    }
    EXPECT_NEAR(residual().median_abs[site], 1, 0.01);
  }
  ASSERT_EQ(residual().massive_groups.size(), 1u);
  EXPECT_EQ(residual().massive_groups[0].first_site, "blocks.1.hook_resid_post");
  EXPECT_EQ(residual().massive_groups[0].n_sites, 5);
}

TEST(PlantedModel, ResidualSinkIsTheSteadyDimensionEverywhere) {
  ASSERT_EQ(residual().sinks.size(), 1u);
  EXPECT_EQ(residual().sinks[0].dim, kSteady);
  EXPECT_EQ(residual().sinks[0].n_sites, 9);
  EXPECT_EQ(residual().sinks[0].argmax_hit, 1);
  EXPECT_NEAR(residual().sinks[0].mean, 32, 1e-3);
  for (const double m2 : residual().m2) EXPECT_NEAR(m2, 32, 0.32);
  EXPECT_EQ(residual().sorted_dims.at(0), kMassive);
  EXPECT_EQ(residual().sorted_dims_without_first.at(0), kSteady);
}

TEST(PlantedModel, GainsAreThePlantedOnes) {
  const ModelFiles& model = *planted().model;
  for (int layer = 0; layer < 4; ++layer) {
    const std::vector<float> ln1 = model.norm_gain(Role::ln1, layer).effective;
    const std::vector<float> ln2 = model.norm_gain(Role::ln2, layer).effective;
    ASSERT_EQ(ln2.size(), 64u);
    for (int dim = 0; dim < 64; ++dim) {
      const bool is_silenced = dim == kMassive && layer >= 2;
      EXPECT_EQ(ln1[dim], 1);
      EXPECT_EQ(ln2[dim], dim == kSteady ? 0.1f : is_silenced ? 0.01f : 1.0f);
    }
  }
}

TEST(PlantedModel, LossIsThatOfSingleLetters) {
  // unigram_logits() of make_planted.py: ln p of space and e, and −mean ln p over the text.
  const std::vector<float> top = planted().reader->read_f32("run0", "logits/top_logprob");
  const std::vector<int> ids = planted().reader->read_i32("run0", "logits/top_ids");
  const std::size_t k = top.size() / kTokens;
  for (std::size_t t = 0; t < kTokens; ++t) {
    EXPECT_EQ(ids[t * k], ' ');
    EXPECT_EQ(ids[t * k + 1], 'e');
    EXPECT_NEAR(top[t * k], -1.80791, 4e-3);
    EXPECT_NEAR(top[t * k + 1], -2.32658, 4e-3);
  }
  const std::vector<double> loss = planted().reader->read_f64("run0", "logits/loss");
  ASSERT_EQ(loss.size(), kTokens - 1u);
  EXPECT_NEAR(std::accumulate(loss.begin(), loss.end(), 0.0) / (kTokens - 1), 3.02332, 3e-3);
}

}  // namespace
}  // namespace sinkscope
