// SPDX-License-Identifier: GPL-3.0-or-later
// Several residual streams (Qwen4-Exp, DeepSeek-V4): their mixes by identities, hashed n-grams by
// hand, configs in both spellings.
#include "capture/model/streams.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "capture/model/blocks.h"
#include "capture/model/ngrams.h"
#include "tests/engine/captured.h"
#include "tests/engine/plain_loops.h"
#include "tests/support/h5_reference.h"
#include "tests/support/shared_files.h"

namespace sinkscope::test {
namespace {

using Json = nlohmann::json;

TEST(Ngrams, RowsEqualThoseByHand) {
  const NgramSpec ngram{4, 3, 1, 2, 1};
  const std::vector<std::int64_t> multipliers = {1, 10, 100}, sizes = {1000, 1000},
                                  offsets = {0, 1000};
  // 2 is the end token: before the start, and behind it, it stands for what came before. An end
  // token itself still sees its own segment.
  EXPECT_THAT(ngram_rows(ngram, {5, 2, 7, 9}, 2, multipliers, sizes, offsets),
              ::testing::ElementsAre(5 ^ 20, 1000 + (5 ^ 20 ^ 200),  //
                                     2 ^ 50, 1000 + (2 ^ 50 ^ 200),  //
                                     7 ^ 20, 1000 + (7 ^ 20 ^ 200),  //
                                     9 ^ 70, 1000 + (9 ^ 70 ^ 200)));
}

TEST(Ngrams, ProductsWrapAndRemaindersAreNotNegative) {
  const NgramSpec ngram{2, 2, 1, 2, 1};
  const std::int64_t huge = (std::int64_t{1} << 62) + 12345;
  const std::vector<std::int64_t> rows = ngram_rows(ngram, {3, 3}, 0, {huge, huge}, {7}, {0});
  // 3·huge = 2^63 + 2^62 + 37035 wraps to −2^62 + 37035, whose remainder by 7 is not negative;
  // equal tokens cancel.
  const std::int64_t wrapped = -(std::int64_t{1} << 62) + 37035;
  EXPECT_EQ(rows[0], (wrapped % 7 + 7) % 7);
  EXPECT_EQ(rows[1], 0);
}

// Streams that are only added to: a mix that takes nothing leaves them as they are.
TEST(StreamMixes, GatedStreamsAreOnlyAddedTo) {
  const at::Tensor x = at::arange(12, at::kFloat).view({1, 2, 6});
  StreamRead read;
  read.take = at::tensor({0.0f, 2.0f, 1.0f, 0.5f}).view({1, 2, 2});
  const at::Tensor out = at::tensor({1.0f, 2.0f, 3.0f, 10.0f, 20.0f, 30.0f}).view({1, 2, 3});
  const at::Tensor want = x + at::tensor({0.0f, 0.0f, 0.0f, 2.0f, 4.0f, 6.0f,  //
                                          10.0f, 20.0f, 30.0f, 5.0f, 10.0f, 15.0f})
                                  .view({1, 2, 6});
  EXPECT_TRUE(write_streams(read, x, out).equal(want));
}

// comb_jk goes from stream j to stream k: a permutation moves them.
TEST(StreamMixes, BalancedStreamsGoFromTheFirstIndexToTheSecond) {
  const at::Tensor x = at::tensor({1.0f, 2.0f, 10.0f, 20.0f, 100.0f, 200.0f}).view({1, 1, 6});
  StreamRead read;
  read.take = at::zeros({1, 1, 3});
  read.comb = at::tensor({0.0f, 1.0f, 0.0f, 0.0f, 0.0f, 1.0f, 1.0f, 0.0f, 0.0f}).view({1, 1, 3, 3});
  const at::Tensor want = at::tensor({100.0f, 200.0f, 1.0f, 2.0f, 10.0f, 20.0f}).view({1, 1, 6});
  EXPECT_TRUE(write_streams(read, x, at::ones({1, 1, 2})).equal(want));
}

// One window of equal gates is a mean; the second entry of overlapping windows reads four tokens.
TEST(CompressedKeys, EntriesEqualThoseByHand) {
  const at::Tensor values = at::arange(10, at::kFloat).view({5, 2});  // 5 tokens, 2 channels
  const at::Tensor plain =
      compressed_entries(values, at::zeros({5, 2}), at::zeros({2, 2}), /*sees_two=*/false);
  EXPECT_TRUE(plain.allclose(at::tensor({1.0f, 2.0f, 5.0f, 6.0f}).view({2, 2})));
  // One channel in two halves: entry 0 is the mean of its own second halves, entry 1 also of the
  // first halves of the window before.
  const at::Tensor both =
      compressed_entries(values, at::zeros({5, 2}), at::zeros({2, 2}), /*sees_two=*/true);
  EXPECT_TRUE(both.allclose(at::tensor({2.0f, (0 + 2 + 5 + 7) / 4.0f}).view({2, 1})));
}

class Streams : public ::testing::TestWithParam<std::string> {};

// Prompts in several groups, weights read again each time: the same numbers, to the bit.
TEST_P(Streams, StreamedWeightsGiveTheSameBits) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/" + GetParam());
  const auto model = open_model(folder);
  CaptureRequest together = everything_of(folder);
  together.runs.push_back(request_for({9, 4, 11, 2, 3, 3, 7}).runs.front());
  CaptureRequest apart = together;
  apart.activation_budget = 1;
  apart.weight_budget = 0;
  const std::string a = capture(*model, together), b = capture(*model, apart);
  EXPECT_EQ(first_difference(a, b), "");
  EXPECT_EQ(first_difference(a, b, "/run1"), "");
}

// One token, and fewer tokens than a window: nothing is compressed, nothing indexed.
TEST_P(Streams, ShortPromptsRun) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/" + GetParam());
  const auto model = open_model(folder);
  CaptureRequest request = request_for({5});
  request.record.maps = request.record.all = true;
  request.runs.push_back(request_for({5, 6, 7}).runs.front());
  const H5Reference got(capture(*model, request));
  for (const float x : got.floats("/run0/residual/stream")) ASSERT_TRUE(std::isfinite(x));
  // The first token does not see the others.
  const std::vector<std::int64_t> dims = got.dims("/run1/residual/stream");  // [S, T, N, D]
  const auto width = static_cast<std::size_t>(dims[2] * dims[3]);
  const std::vector<float> one = got.floats("/run0/residual/stream"),
                           three = got.floats("/run1/residual/stream");
  for (std::size_t i = 0; i < one.size(); ++i)
    ASSERT_NEAR(one[i], three[i / width * 3 * width + i % width], 1e-5) << i;
}

INSTANTIATE_TEST_SUITE_P(Models, Streams, ::testing::Values("qwen4_exp", "deepseek_v4"),
                         [](const auto& test) { return test.param; });

TEST(StreamSpellings, Qwen4ExpSaysFullAttentionAndRopeOnTop) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/qwen4_exp");
  const auto old = with_config(folder, [](Json& config) {
    for (auto& type : config["layer_types"])
      if (type == "indexed_attention") type = "full_attention";
    config["rope_theta"] = config["rope_parameters"]["rope_theta"];
    config["partial_rotary_factor"] = config["rope_parameters"]["partial_rotary_factor"];
    config.erase("rope_parameters");
  });
  ASSERT_THAT(old->obstacles(), ::testing::IsEmpty());
  const CaptureRequest request = everything_of(folder);
  EXPECT_EQ(first_difference(capture(*open_model(folder), request), capture(*old, request)), "");
}

// Without layer_types: one attention layer after every three.
TEST(StreamSpellings, Qwen4ExpHasAnIntervalWithoutLayerTypes) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/qwen4_exp");
  const auto model = with_config(folder, [](Json& config) {
    config.erase("layer_types");
    config["full_attention_interval"] = 2;
  });
  EXPECT_EQ(model->spec().mixers, open_model(folder)->spec().mixers);
}

TEST(StreamSpellings, DeepSeekV4InOldWords) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/deepseek_v4");
  const auto old = with_config(folder, [](Json& config) {
    const Json ropes = config["rope_parameters"];
    Json yarn = ropes["compress"];
    for (const char* key : {"rope_theta", "partial_rotary_factor", "attention_factor"})
      yarn.erase(key);
    yarn["type"] = yarn["rope_type"];
    yarn.erase("rope_type");
    config["rope_theta"] = ropes["main"]["rope_theta"];
    config["compress_rope_theta"] = ropes["compress"]["rope_theta"];
    config["rope_scaling"] = yarn;
    config["compress_ratios"] = {0, 4, 128, 4, 0};  // one more for the layer that predicts further
    config["compress_rate_csa"] = 4;
    config["compress_rate_hca"] = 8;
    config["num_hash_layers"] = 1;
    for (const char* key : {"rope_parameters", "layer_types", "compress_rates", "mlp_layer_types",
                            "partial_rotary_factor"})
      config.erase(key);
  });
  ASSERT_THAT(old->obstacles(), ::testing::IsEmpty());
  const CaptureRequest request = everything_of(folder);
  EXPECT_EQ(first_difference(capture(*open_model(folder), request), capture(*old, request)), "");
}

// Twenty rounds of Sinkhorn: columns, which come last, sum to 1 up to hc_eps, rows nearly.
TEST(StreamMixes, MatricesBetweenStreamsAreDoublyStochastic) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/deepseek_v4");
  const auto model = with_config(folder, [](Json& config) {
    config["hc_sinkhorn_iters"] = 20;
    config["hc_eps"] = 1e-6;
  });
  const H5Reference got(capture(*model, everything_of(folder)));
  const std::size_t N = 3;
  for (const char* hook : {"hyper_attn.hook_comb", "hyper_mlp.hook_comb"})
    for (const Row& comb : tap_rows(got, hook, 2, N * N))
      for (std::size_t k = 0; k < N; ++k) {
        double column = 0, row = 0;
        for (std::size_t j = 0; j < N; ++j) {
          column += comb[j * N + k];
          row += comb[k * N + j];
        }
        ASSERT_NEAR(column, 1, 1e-5);
        ASSERT_NEAR(row, 1, 5e-3);
      }
}

}  // namespace
}  // namespace sinkscope::test
