// SPDX-License-Identifier: GPL-3.0-or-later
// A request to stop is seen inside the second half of a block: between chunks of a dense MLP and
// between experts, and it ends the pass there.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <stop_token>
#include <utility>

#include "capture/model/blocks.h"
#include "capture/model/mlp_chunk.h"
#include "capture/run/model_pass.h"
#include "tests/engine/captured.h"
#include "tests/support/shared_files.h"
#include "tests/support/tiny_folder.h"

namespace sinkscope::test {
namespace {

// Wants nothing; may ask to stop when a site is tapped.
class StoppableListener : public TapListener {
 public:
  explicit StoppableListener(std::stop_source stop, std::optional<Site> at = {})
      : stop_(std::move(stop)), at_(at) {}
  void on_tap(Site site, int, const at::Tensor&) override {
    if (site == at_) stop_.request_stop();
  }
  bool wants(Site, int) const override { return false; }
  std::stop_token stop() const override { return stop_.get_token(); }
  at::Tensor on_attention(int, const AttentionCall& call) override {
    return at::zeros({call.q.size(0), call.q.size(1), call.v.size(2)});
  }

 private:
  std::stop_source stop_;
  std::optional<Site> at_;
};

// Counts gated units, which is chunks and experts, and asks to stop at the n-th; 0: never.
class CountsUnits : public Interventions {
 public:
  CountsUnits(std::stop_source stop, int last) : stop_(std::move(stop)), last_(last) {}
  at::Tensor on_gate(int, const at::Tensor& gate, const at::Tensor& up, Activation own) override {
    if (++n_units == last_) stop_.request_stop();
    return gated_unit(own, gate, up);
  }
  int n_units = 0;

 private:
  std::stop_source stop_;
  int last_;
};

struct Ran {
  bool is_whole = false;
  int n_units = 0;
};

Ran run_feed_forward(const ArchSpec& spec, const LayerWeights& w, const at::Tensor& n, int last) {
  std::stop_source stop;
  StoppableListener listener(stop);
  CountsUnits edits(stop, last);
  LaneState state;
  const at::Tensor out = feed_forward({spec, w, 0, RotaryTable(), listener, edits, state}, n, n);
  return {out.defined(), edits.n_units};
}

// So wide that 300 tokens are three chunks of 128, 128 and 44.
TEST(Stop, IsSeenBetweenChunksOfADenseMlp) {
  constexpr std::int64_t kTokens = 300, kWidth = 44'000, kModel = 5;
  ASSERT_EQ(mlp_chunk(kTokens, kWidth), 128);
  ArchSpec spec;
  spec.d_model = kModel;
  spec.d_mlp = kWidth;
  LayerWeights w;
  w.gate_up = at::full({2 * kWidth, kModel}, 0.25f);
  w.down = at::full({kModel, kWidth}, 0.5f);
  const at::Tensor n = at::ones({1, kTokens, kModel});
  const Ran whole = run_feed_forward(spec, w, n, 0), second = run_feed_forward(spec, w, n, 2);
  EXPECT_TRUE(whole.is_whole);
  EXPECT_EQ(whole.n_units, 3);
  EXPECT_FALSE(second.is_whole);
  EXPECT_EQ(second.n_units, 2);
}

// Block 0 of a model of six experts that every token goes to.
std::unique_ptr<ModelFiles> mixture() {
  constexpr int kExperts = 6, kWidth = 3, kModel = 8;
  TinyFolder tiny = tiny_folder("qwen3", 1);
  tiny.config["model_type"] = "qwen3_moe";
  tiny.config["num_experts"] = kExperts;
  tiny.config["num_experts_per_tok"] = kExperts;
  tiny.config["moe_intermediate_size"] = kWidth;
  const std::string mlp = "model.layers.0.mlp.";
  for (const char* dense : {"gate_proj", "up_proj", "down_proj"})
    tiny.remove(mlp + dense + ".weight");
  tiny.add(mlp + "gate.weight", {kExperts, kModel});
  for (int e = 0; e < kExperts; ++e) {
    const std::string expert = mlp + "experts." + std::to_string(e) + ".";
    tiny.add(expert + "gate_proj.weight", {kWidth, kModel});
    tiny.add(expert + "up_proj.weight", {kWidth, kModel});
    tiny.add(expert + "down_proj.weight", {kModel, kWidth});
  }
  return open_model(tiny.write(scratch_folder()));
}

TEST(Stop, IsSeenBetweenExperts) {
  const auto model = mixture();
  WeightStore store(*model, at::kCPU, at::kFloat, 0);
  const LayerWeights w = *store.layer(0);
  const at::Tensor n = at::ones({1, 2, 8});
  const Ran whole = run_feed_forward(model->spec(), w, n, 0),
            fourth = run_feed_forward(model->spec(), w, n, 4);
  EXPECT_TRUE(whole.is_whole);
  EXPECT_EQ(whole.n_units, 6);
  EXPECT_FALSE(fourth.is_whole);
  EXPECT_EQ(fourth.n_units, 4);
}

// All tokens go through the shared expert: it comes in chunks as a dense MLP does.
TEST(Stop, IsSeenBetweenChunksOfASharedExpert) {
  constexpr std::int64_t kTokens = 300, kWidth = 44'000;
  const auto model = mixture();
  WeightStore store(*model, at::kCPU, at::kFloat, 0);
  LayerWeights w = *store.layer(0);
  w.shared.gate_up = at::full({2 * kWidth, 8}, 0.25f);
  w.shared.down = at::full({8, kWidth}, 0.5f);
  const at::Tensor n = at::ones({1, kTokens, 8});
  const Ran whole = run_feed_forward(model->spec(), w, n, 0),
            second = run_feed_forward(model->spec(), w, n, 6 + 2);
  EXPECT_TRUE(whole.is_whole);
  EXPECT_EQ(whole.n_units, 6 + 3);
  EXPECT_FALSE(second.is_whole);
  EXPECT_EQ(second.n_units, 6 + 2);
}

// The job itself is not asked: what a block's second half has seen ends the pass.
TEST(Stop, InsideTheSecondHalfEndsThePass) {
  const std::vector<int> ids = {3, 9, 4};
  for (const bool has_experts : {false, true}) {
    const auto model =
        has_experts ? mixture() : open_model(tiny_folder("llama", 1).write(scratch_folder()));
    ModelPass pass(*model, at::kCPU, at::kFloat, 0);
    for (const std::optional<Site> at : {std::optional(Site::ln2_out), std::optional<Site>()}) {
      std::vector<Lane> lanes;
      lanes.push_back(
          pass.start(ids, std::make_unique<StoppableListener>(std::stop_source(), at), nullptr));
      Progress progress;
      int n_layers = 0;
      const bool is_whole =
          pass.run_blocks(lanes, {std::stop_token(), progress}, 0, [&](int) { ++n_layers; });
      EXPECT_EQ(is_whole, !at) << has_experts;
      EXPECT_EQ(n_layers, is_whole ? 1 : 0);
    }
  }
}

}  // namespace
}  // namespace sinkscope::test
