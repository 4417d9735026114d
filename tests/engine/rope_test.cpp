// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/model/rope.h"

#include <gtest/gtest.h>

#include <cmath>

#include "capture/checkpoint/model_files.h"
#include "core/error.h"
#include "tests/support/h5_reference.h"
#include "tests/support/shared_files.h"

namespace sinkscope {
namespace {

RopeSpec plain(int dims) {
  RopeSpec rope;
  rope.rotary_dim = dims;
  return rope;
}

TEST(Rope, PlainAndLinear) {
  RopeSpec rope = plain(6);
  const RopeFrequencies f = rope_frequencies(rope, 100, 10);
  ASSERT_EQ(f.inverse.size(), 3u);
  EXPECT_FLOAT_EQ(f.inverse[0], 1);
  EXPECT_FLOAT_EQ(f.inverse[1], static_cast<float>(std::pow(10000.0, -2.0 / 6)));
  EXPECT_EQ(f.attention_scaling, 1);
  rope.scaling = RopeScaling::linear;
  rope.factor = 4;
  EXPECT_FLOAT_EQ(rope_frequencies(rope, 100, 10).inverse[2],
                  static_cast<float>(std::pow(10000.0, -4.0 / 6) / 4));
}

// base *= (factor·S/Lmax − (factor−1))^(d/(d−2)), S = max(seq, Lmax)
TEST(Rope, DynamicGrowsWithTheSequenceBeyondTheContext) {
  RopeSpec rope = plain(8);
  const std::vector<float> unscaled = rope_frequencies(rope, 100, 50).inverse;
  rope.scaling = RopeScaling::dynamic;
  rope.factor = 2;
  EXPECT_EQ(rope_frequencies(rope, 100, 50).inverse, unscaled);
  const double base = 10000 * std::pow(2.0 * 300 / 100 - 1, 8.0 / 6);
  EXPECT_FLOAT_EQ(rope_frequencies(rope, 100, 300).inverse[3],
                  static_cast<float>(std::pow(base, -6.0 / 8)));
}

TEST(Rope, Llama3HasThreeRegimes) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/llama");
  const auto model = open_model(folder);
  const test::H5Reference want(folder + "/expected.h5");
  const std::string buffer = want.children("/rope").front();
  const std::vector<float> expected = want.floats("/rope/" + buffer);
  const RopeFrequencies f = rope_frequencies(model->spec().rope, model->spec().n_ctx, 23);
  ASSERT_EQ(f.inverse.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(f.inverse[i] / expected[i], 1, 3e-7) << i;
  EXPECT_EQ(f.attention_scaling, want.number("/rope/" + buffer, "attention_scaling"));
}

// GPT-OSS' published setting: factor 32, original context 4096, not truncated.
TEST(Rope, YarnScalesCosAndSinAndInterpolatesSlowDims) {
  RopeSpec rope = plain(64);
  rope.theta = 150000;
  rope.scaling = RopeScaling::yarn;
  rope.factor = 32;
  rope.original_context = 4096;
  rope.truncate = false;
  const RopeFrequencies f = rope_frequencies(rope, 131072, 10);
  EXPECT_NEAR(f.attention_scaling, 0.1 * std::log(32.0) + 1, 1e-6);
  EXPECT_FLOAT_EQ(f.inverse[0], 1);                                           // fast: kept
  EXPECT_NEAR(f.inverse[31] * 32 / std::pow(150000.0, -62.0 / 64), 1, 1e-6);  // slow: divided
  rope.mscale = 2;
  rope.mscale_all_dim = 1;
  EXPECT_NEAR(rope_frequencies(rope, 131072, 10).attention_scaling,
              (0.2 * std::log(32.0) + 1) / (0.1 * std::log(32.0) + 1), 1e-6);
  rope.attention_factor = 1.5;
  EXPECT_EQ(rope_frequencies(rope, 131072, 10).attention_scaling, 1.5f);
}

TEST(Rope, DivisorsOfTheWrongLengthAreRefused) {
  EXPECT_THROW(rope_frequencies(plain(8), 100, 10, {1, 2, 3}), Error);
  EXPECT_FLOAT_EQ(rope_frequencies(plain(4), 100, 10, {1, 4}).inverse[1], 0.01f / 4);
}

}  // namespace
}  // namespace sinkscope
