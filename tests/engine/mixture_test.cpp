// SPDX-License-Identifier: GPL-3.0-or-later
// Mixtures of experts: where tokens go, and that nothing else is read.
#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "capture/model/moe.h"
#include "tests/engine/captured.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/h5_reference.h"
#include "tests/support/shared_files.h"
#include "tests/support/tiny_folder.h"

namespace sinkscope::test {
namespace {

at::Tensor row(const std::vector<float>& values) {
  return at::tensor(values).view({1, static_cast<std::int64_t>(values.size())});
}

void expect_row(const at::Tensor& weights, const std::vector<float>& want) {
  ASSERT_EQ(weights.numel(), static_cast<std::int64_t>(want.size()));
  for (std::size_t e = 0; e < want.size(); ++e)
    EXPECT_NEAR(weights[0][static_cast<std::int64_t>(e)].item<float>(), want[e], 1e-6) << e;
}

float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

// exp(logits) = 1, 2, 4, 1: shares 1/8, 2/8, 4/8, 1/8.
const std::vector<float> kLogits = {0, std::log(2.0f), std::log(4.0f), 0};

TEST(Route, SoftmaxOverAllThenTheLargest) {
  MoeSpec moe{.n_experts = 4, .n_used = 2, .d_expert = 3, .renormalize = false};
  expect_row(route(moe, row(kLogits), {}).weights, {0, 0.25f, 0.5f, 0});
  moe.renormalize = true;
  moe.scale = 3;
  expect_row(route(moe, row(kLogits), {}).weights, {0, 1, 2, 0});
}

TEST(Route, SoftmaxOverTheChosenAlone) {
  const MoeSpec moe{
      .n_experts = 4, .n_used = 2, .d_expert = 3, .score = RouterScore::chosen_softmax};
  expect_row(route(moe, row(kLogits), {}).weights, {0, 1 / 3.0f, 2 / 3.0f, 0});
}

TEST(Route, EqualScoresGoToTheLowerIndex) {
  const MoeSpec moe{.n_experts = 4, .n_used = 3, .d_expert = 3};
  expect_row(route(moe, row(kLogits), {}).weights, {1 / 7.0f, 2 / 7.0f, 4 / 7.0f, 0});
}

// The bias chooses, the weight is the plain sigmoid.
TEST(Route, TheChoiceBiasOnlyChooses) {
  const MoeSpec moe{.n_experts = 3,
                    .n_used = 1,
                    .d_expert = 3,
                    .score = RouterScore::sigmoid,
                    .renormalize = false};
  const at::Tensor bias = at::tensor({5.0f, 0.0f, 0.0f});
  expect_row(route(moe, row({-1, 2, 1}), bias).weights, {sigmoid(-1), 0, 0});
}

// Groups {0, 1}, {2, 3}: the first has the best expert, the second the better pair.
TEST(Route, GroupsCompeteByTheirTwoBest) {
  MoeSpec moe{.n_experts = 4,
              .n_used = 2,
              .d_expert = 3,
              .score = RouterScore::sigmoid,
              .renormalize = false,
              .n_groups = 2,
              .n_groups_used = 1};
  const std::vector<float> logits = {3, -9, 2, 1};
  expect_row(route(moe, row(logits), {}).weights, {0, 0, sigmoid(2), sigmoid(1)});
  // A rejected expert counts 0: it beats a kept one whose choice is negative.
  const at::Tensor bias = at::tensor({0.0f, 0.0f, 0.0f, -1.0f});
  moe.n_groups_used = 1;
  const std::vector<float> close = {-3, -9, 2, 1};
  expect_row(route(moe, row(close), bias).weights, {0, 0, sigmoid(2), sigmoid(1)});
  moe.rejected_is_zero = true;
  expect_row(route(moe, row(close), bias).weights, {sigmoid(-3), 0, sigmoid(2), 0});
}

constexpr int kExperts = 64, kWidth = 12;

// Blocks of 64 experts, one a token.
std::string mixture_folder(int n_layers = 2) {
  TinyFolder tiny = tiny_folder("qwen3", n_layers);
  tiny.config["model_type"] = "qwen3_moe";
  tiny.config["num_experts"] = kExperts;
  tiny.config["num_experts_per_tok"] = 1;
  tiny.config["moe_intermediate_size"] = kWidth;
  for (int layer = 0; layer < n_layers; ++layer) {
    const std::string mlp = "model.layers." + std::to_string(layer) + ".mlp.";
    for (const char* dense : {"gate_proj", "up_proj", "down_proj"})
      tiny.remove(mlp + dense + ".weight");
    tiny.add(mlp + "gate.weight", {kExperts, 8});
    for (int e = 0; e < kExperts; ++e) {
      const std::string expert = mlp + "experts." + std::to_string(e) + ".";
      tiny.add(expert + "gate_proj.weight", {kWidth, 8});
      tiny.add(expert + "up_proj.weight", {kWidth, 8});
      tiny.add(expert + "down_proj.weight", {8, kWidth});
    }
  }
  return tiny.write(scratch_folder());
}

// What planning reads: the fingerprint's pieces of every tensor, and gains.
std::int64_t bytes_of_plan(const ModelFiles& model, const CaptureRequest& request) {
  const std::int64_t before = model.bytes_read();
  plan_capture(model, request);
  return model.bytes_read() - before;
}

// 64 experts, one a token, two tokens: two experts are read, and a dense file of the same size is
// not touched beyond them.
void expect_only_routed_experts(const std::unique_ptr<ModelFiles>& model) {
  ASSERT_THAT(model->obstacles(), ::testing::IsEmpty());
  CaptureRequest request = request_for({3, 9});
  request.record.sites = {"mlp.hook_router"};
  const std::int64_t planned = bytes_of_plan(*model, request), before = model->bytes_read();
  const H5Reference got(capture(*model, request));
  const std::vector<float> weights = got.floats("/run0/taps/mlp.hook_router/values");
  std::int64_t reached = 0;  // experts of both layers that some token goes to
  for (int layer = 0; layer < 2; ++layer)
    for (int e = 0; e < kExperts; ++e)
      reached += weights[static_cast<std::size_t>(layer * 2 * kExperts + e)] > 0 ||
                 weights[static_cast<std::size_t>((layer * 2 + 1) * kExperts + e)] > 0;
  EXPECT_GE(reached, 2);
  EXPECT_LE(reached, 4);
  const std::int64_t expert = 3 * kWidth * 8 * 4;
  std::int64_t rest = 0;  // everything else in the file, at most
  for (const TensorInfo& tensor : model->checkpoint().tensors())
    if (tensor.name.find(".experts.") == std::string::npos &&
        tensor.name.find("_exps.") == std::string::npos)
      rest += static_cast<std::int64_t>(tensor.n_bytes);
  const std::int64_t read = model->bytes_read() - before - planned;
  EXPECT_GE(read, reached * expert);
  EXPECT_LE(read, reached * expert + rest);
  EXPECT_LT(read, 2 * kExperts * expert / 4);  // far from all
}

TEST(Mixture, OnlyRoutedExpertsAreRead) {
  expect_only_routed_experts(open_model(mixture_folder()));
}

// There the experts of a block are one tensor.
TEST(Mixture, OnlyRoutedExpertsOfAGgufFileAreRead) {
  const auto folder = open_model(mixture_folder());
  expect_only_routed_experts(open_model(write_gguf(*folder, scratch_folder() + "/model.gguf")));
}

// Four prompts that go to the same experts, one group each: with room for them, experts are read
// once; without, for every group again.
TEST(Mixture, ExpertsAreKeptAsFarAsTheBudgetGoes) {
  constexpr int kLayers = 5;
  const std::string folder = mixture_folder(kLayers);
  const auto bytes_of = [&](int n_prompts, std::int64_t budget) {
    const auto model = open_model(folder);
    CaptureRequest request = request_for({3, 9, 4, 1, 7});
    request.runs.resize(static_cast<std::size_t>(n_prompts), request.runs.front());
    request.activation_budget = 1;
    request.weight_budget = budget;
    const std::int64_t planned = bytes_of_plan(*model, request), before = model->bytes_read();
    capture(*model, request);
    return model->bytes_read() - before - planned;
  };
  const std::int64_t one = bytes_of(1, 1 << 20), kept = bytes_of(4, 1 << 20),
                     dropped = bytes_of(4, 0), some = bytes_of(4, 22'000),
                     two_blocks = bytes_of(4, 9000);
  const std::int64_t expert = 3 * kWidth * 8 * 4;
  // The head and the embedding rows are read for every group; no expert is.
  const std::int64_t outside = 3 * (32 * 8 + 5 * 8 + 8) * 4;
  EXPECT_LE(kept, one + 2 * outside);
  EXPECT_GE(dropped, kept + 3 * kLayers * expert);
  EXPECT_GT(dropped, some);
  EXPECT_GT(some, kept);
  // A block has 4,464 bytes beside its experts: the budget counts the two that are streamed.
  EXPECT_EQ(two_blocks, dropped);
}

}  // namespace
}  // namespace sinkscope::test
