// SPDX-License-Identifier: GPL-3.0-or-later
// Two models on the same tokens, against their recorded logits in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "capture/model_comparison.h"
#include "core/capture_reader.h"
#include "core/error.h"
#include "tests/engine/captured.h"
#include "tests/support/shared_files.h"
#include "tests/support/tiny_folder.h"

namespace sinkscope::test {
namespace {

// More tokens than the head takes at once.
constexpr int kVocabulary = 3500;

// A model of random numbers, `width` wide.
std::unique_ptr<ModelFiles> random_model(int width, unsigned seed, int vocabulary = kVocabulary) {
  constexpr int kHeadsWide = 24, kKeysWide = 12, kMlp = 10;  // 4 and 2 heads of 6
  TinyFolder folder = tiny_folder();
  folder.config["hidden_size"] = width;
  folder.config["vocab_size"] = vocabulary;
  const auto put = [&](const std::string& name, const std::vector<std::int64_t>& shape) {
    folder.remove(name).add(name, shape);
  };
  for (const char* name : {"model.embed_tokens.weight", "lm_head.weight"})
    put(name, {vocabulary, width});
  put("model.norm.weight", {width});
  for (int layer = 0; layer < 2; ++layer) {
    const std::string block = "model.layers." + std::to_string(layer) + ".";
    for (const char* norm : {"input_layernorm.weight", "post_attention_layernorm.weight"})
      put(block + norm, {width});
    put(block + "self_attn.q_proj.weight", {kHeadsWide, width});
    for (const char* name : {"self_attn.k_proj.weight", "self_attn.v_proj.weight"})
      put(block + name, {kKeysWide, width});
    put(block + "self_attn.o_proj.weight", {width, kHeadsWide});
    for (const char* name : {"mlp.gate_proj.weight", "mlp.up_proj.weight"})
      put(block + name, {kMlp, width});
    put(block + "mlp.down_proj.weight", {width, kMlp});
  }
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> number(-1, 1);
  for (auto& [name, tensor] : folder.tensors)
    for (float& value : tensor.values) value = number(random);
  return open_model(folder.write(scratch_folder()));
}

ModelComparison& comparison() { return dynamic_cast<ModelComparison&>(engine()); }

EvaluateRequest prompts() {
  EvaluateRequest request;
  request.device = "cpu";
  request.threads = test_threads();
  for (const std::vector<int>& ids :
       {std::vector{1, 3499, 17, 3072, 3071, 5}, std::vector{9, 2, 3100}, std::vector{7}})
    request.runs.emplace_back().token_ids = ids;
  return request;
}

std::vector<RunDivergence> compared(const ModelFiles& a, const ModelFiles& b,
                                    const EvaluateRequest& request) {
  Progress progress;
  auto runs = comparison().compare_models(a, b, request, {std::stop_token(), progress});
  if (!runs) throw std::runtime_error("canceled");
  EXPECT_EQ(progress.done, progress.total);
  return std::move(*runs);
}

// Logits [T][V] as they are recorded.
std::vector<std::vector<double>> logits_of(const ModelFiles& model, const std::vector<int>& ids) {
  CaptureRequest request = request_for(ids);
  request.record.logits = true;
  const auto flat = CaptureReader::open(capture(model, request))->read_f32("run0", "logits/full");
  std::vector<std::vector<double>> rows;
  for (std::size_t t = 0; t < ids.size(); ++t)
    rows.emplace_back(flat.begin() + static_cast<std::ptrdiff_t>(t * kVocabulary),
                      flat.begin() + static_cast<std::ptrdiff_t>((t + 1) * kVocabulary));
  return rows;
}

std::vector<double> log_softmax(std::vector<double> z) {
  const double top = *std::max_element(z.begin(), z.end());
  double sum = 0;
  for (const double value : z) sum += std::exp(value - top);
  for (double& value : z) value -= top + std::log(sum);
  return z;
}

TEST(CompareModels, KlAndLossesAreThoseOfTheRecordedLogits) {
  const auto a = random_model(8, 1), b = random_model(14, 2);
  const EvaluateRequest request = prompts();
  const std::vector<RunDivergence> runs = compared(*a, *b, request);
  ASSERT_EQ(runs.size(), request.runs.size());
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const std::vector<int>& ids = request.runs[r].token_ids;
    EXPECT_EQ(runs[r].input, request.runs[r]);
    ASSERT_EQ(runs[r].kl.size(), ids.size() - 1);
    ASSERT_EQ(runs[r].loss_a.size(), ids.size() - 1);
    ASSERT_EQ(runs[r].loss_b.size(), ids.size() - 1);
    const auto za = logits_of(*a, ids), zb = logits_of(*b, ids);
    for (std::size_t t = 0; t + 1 < ids.size(); ++t) {
      const std::vector<double> p = log_softmax(za[t]), q = log_softmax(zb[t]);
      double kl = 0;
      for (std::size_t v = 0; v < p.size(); ++v) kl += std::exp(p[v]) * (p[v] - q[v]);
      EXPECT_GT(kl, 0.05);  // the models are different
      EXPECT_NEAR(runs[r].kl[t], kl, 1e-5 * std::max(1.0, kl));
      const auto next = static_cast<std::size_t>(ids[t + 1]);
      EXPECT_NEAR(runs[r].loss_a[t], -p[next], 1e-5 * std::abs(p[next]));
      EXPECT_NEAR(runs[r].loss_b[t], -q[next], 1e-5 * std::abs(q[next]));
    }
  }
}

TEST(CompareModels, AModelDoesNotDivergeFromItself) {
  const auto a = random_model(8, 1);
  for (const RunDivergence& run : compared(*a, *a, prompts())) {
    EXPECT_EQ(run.kl, std::vector<float>(run.kl.size(), 0));
    EXPECT_EQ(run.loss_a, run.loss_b);
  }
}

TEST(CompareModels, PromptByPromptItIsTheSame) {
  const auto a = random_model(8, 1), b = random_model(14, 2);
  EvaluateRequest request = prompts();
  const std::vector<RunDivergence> together = compared(*a, *b, request);
  request.activation_budget = 1;
  const std::vector<RunDivergence> alone = compared(*a, *b, request);
  ASSERT_EQ(alone.size(), together.size());
  for (std::size_t r = 0; r < alone.size(); ++r) {
    EXPECT_EQ(alone[r].kl, together[r].kl);
    EXPECT_EQ(alone[r].loss_b, together[r].loss_b);
  }
}

TEST(CompareModels, StoppedItSaysSoAndOtherVocabulariesAreRefused) {
  const auto a = random_model(8, 1), b = random_model(14, 2), c = random_model(8, 3, 3499);
  Progress progress;
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(comparison().compare_models(*a, *b, prompts(), {stop.get_token(), progress}));
  EXPECT_THROW(compared(*a, *c, prompts()), Error);
}

}  // namespace
}  // namespace sinkscope::test
