// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/snapshot/pinned_value.h"

#include <gtest/gtest.h>

#include "core/capture_norms.h"
#include "tests/core/planted_capture.h"

namespace sinkscope {
namespace {

using Quantity = PinnedCell::Quantity;
using test::Planted;

class PinnedValue : public ::testing::Test {
 protected:
  PinnedValue() {
    for (const char* run : {"run0", "run1"}) test::add_planted_run(capture_, run);
    test::put_norm(capture_, "run0", "ln1", {0, 1}, {1, 1, 1.5, 1, 1, -0.004, 1.25, 8});
    capture_.put("run0", "norm/ln1/pre_gain", {2, 4}, {1, 1, 1, 7, 1, 0.5, 1, 1});
  }
  std::optional<double> at(const PinnedCell& pin, const std::string& run = "run0") const {
    return read_pinned(capture_, run, pin);
  }
  test::FakeCapture capture_;
};

CellRef attention_cell(int layer, int head, int query, int key) {
  return {layer, head, query, key, -1, -1};
}
CellRef state_cell(int token, int dim) { return {-1, -1, -1, -1, token, dim}; }

TEST_F(PinnedValue, AttentionOfEveryRun) {
  const PinnedCell sink{Quantity::attention, attention_cell(1, 2, 7, 0)};
  EXPECT_EQ(at(sink), 1);
  EXPECT_EQ(at(sink, "run1"), 1);
  EXPECT_NEAR(*at({Quantity::attention, attention_cell(0, 1, 3, 2)}), 0.25, 1e-7);
  EXPECT_EQ(at({Quantity::attention, attention_cell(0, 1, 3, 5)}), std::nullopt) << "masked";
  EXPECT_EQ(at({Quantity::attention, attention_cell(0, 1, 30, 0)}), std::nullopt);
  EXPECT_EQ(at({Quantity::attention, attention_cell(9, 1, 3, 0)}), std::nullopt);
}

TEST_F(PinnedValue, ScoreStateAndGain) {
  EXPECT_EQ(at({Quantity::score, {1, 2, -1, -1, -1, -1}}), 1);
  EXPECT_EQ(at({Quantity::score, {1, 7, -1, -1, -1, -1}}), std::nullopt);
  EXPECT_EQ(at({Quantity::residual, state_cell(0, 4), "blocks.0.hook_resid_post"}), -5000);
  EXPECT_EQ(at({Quantity::residual, state_cell(0, 4), "blocks.7.hook_resid_post"}), std::nullopt);
  EXPECT_EQ(at({Quantity::residual, state_cell(3, 5), "blocks.0.hook_resid_pre"}), 43);
  const CellRef dim1{1, -1, -1, -1, -1, 1};
  EXPECT_FLOAT_EQ(static_cast<float>(*at({Quantity::gain, dim1, "ln1"})), 0.004F);
  EXPECT_EQ(at({Quantity::gain, dim1, "ln1/pre_gain"}), 0.5);
  EXPECT_EQ(at({Quantity::gain, dim1, "ln1"}, "run1"), std::nullopt) << "has no norms";
  EXPECT_EQ(at({Quantity::shown, dim1}), std::nullopt);
}

TEST_F(PinnedValue, OfAModelThatWasNotRunItsGains) {
  const std::vector<NormFacts> norms = read_norms(capture_, "run0");
  ASSERT_FALSE(norms.empty());
  const CellRef dim1{1, -1, -1, -1, -1, 1};
  const PinnedCell gain{Quantity::gain, dim1, "ln1"}, pre{Quantity::gain, dim1, "ln1/pre_gain"};
  EXPECT_FLOAT_EQ(static_cast<float>(*pinned_gain(norms, gain)), 0.004F);
  EXPECT_EQ(pinned_gain(norms, pre), 0.5);
  EXPECT_EQ(pinned_gain(norms, {Quantity::gain, {1, -1, -1, -1, -1, 4}, "ln1"}), std::nullopt);
  EXPECT_EQ(pinned_gain(norms, {Quantity::gain, {2, -1, -1, -1, -1, 1}, "ln1"}), std::nullopt);
  EXPECT_EQ(pinned_gain(norms, {Quantity::gain, dim1, "ln2"}), std::nullopt);
  EXPECT_EQ(pinned_gain(norms, {Quantity::score, dim1, "ln1"}), std::nullopt);
}

}  // namespace
}  // namespace sinkscope
