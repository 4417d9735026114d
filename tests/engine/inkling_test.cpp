// SPDX-License-Identifier: GPL-3.0-or-later
// What Inkling 2 has of its own: attention over depth, short convolutions, logits by distance; its
// wrapper's config, and experts in MXFP8.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "capture/model/depth_mix.h"
#include "capture/model/relative_logits.h"
#include "capture/model/short_convolution.h"
#include "core/error.h"
#include "tests/engine/captured.h"
#include "tests/engine/plain_loops.h"
#include "tests/support/h5_reference.h"
#include "tests/support/safetensors_bytes.h"
#include "tests/support/shared_files.h"

namespace sinkscope::test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

at::Tensor normal(std::vector<std::int64_t> shape, int seed) {
  auto generator = at::detail::createCPUGenerator(static_cast<std::uint64_t>(seed));
  return at::randn(shape, generator, at::kFloat);
}

double at3(const at::Tensor& x, std::int64_t i, std::int64_t j, std::int64_t k) {
  return x[i][j][k].item<double>();
}

// Queries of zeros, as training starts with them: the mean of the states, each at its unit length.
TEST(DepthMix, QueriesOfZerosGiveTheMeanOfTheUnitStates) {
  const std::int64_t T = 3, D = 5;
  const at::Tensor a = at::full({1, T, D}, 4.0), b = at::full({1, T, D}, -0.5);
  const DepthMix mix = mix_states(at::zeros({2, D}), {a, b, a});
  EXPECT_EQ(mix.weights.sizes(), (std::vector<std::int64_t>{1, T, 2, 3}));
  EXPECT_LT((mix.weights - 1.0 / 3).abs().max().item<double>(), 1e-7);
  EXPECT_LT((mix.mixed - 1.0 / 3).abs().max().item<double>(), 1e-5);  // (1 − 1 + 1) / 3
}

TEST(DepthMix, EqualsPlainLoops) {
  const std::int64_t T = 4, D = 7, Q = 2, S = 3;
  std::vector<at::Tensor> states;
  for (int s = 0; s < S; ++s) states.push_back(normal({1, T, D}, s) * (1 + 2 * s));
  const at::Tensor queries = normal({Q, D}, 9) * 3;
  const DepthMix mix = mix_states(queries, states);
  for (std::int64_t q = 0; q < Q; ++q)
    for (std::int64_t t = 0; t < T; ++t) {
      std::vector<double> weight(S), rms(S);
      double sum = 0;
      for (std::size_t s = 0; s < S; ++s) {
        double square = 0, dot = 0;
        for (std::int64_t d = 0; d < D; ++d) {
          const double x = at3(states[s], 0, t, d);
          square += x * x / static_cast<double>(D);
          dot += x * queries[q][d].item<double>();
        }
        rms[s] = std::sqrt(square + 1e-6);
        sum += weight[s] = std::exp(dot / rms[s] / std::sqrt(static_cast<double>(D)));
      }
      for (std::int64_t d = 0; d < D; ++d) {
        double mixed = 0;
        for (std::size_t s = 0; s < S; ++s)
          mixed += weight[s] / sum * at3(states[s], 0, t, d) / rms[s];
        EXPECT_NEAR(at3(mix.mixed, q, t, d), mixed, 1e-5);
      }
      for (std::size_t s = 0; s < S; ++s)
        EXPECT_NEAR(at3(mix.weights[0], t, q, static_cast<std::int64_t>(s)), weight[s] / sum, 1e-6);
    }
}

// A step at token 1: the last tap acts at once, the first after K − 1 tokens; 1/√(K+1) = 1/2.
TEST(ShortConvolution, TheLastTapIsTheCurrentToken) {
  const at::Tensor u = at::tensor({0.0f, 2.0f, 0.0f, 0.0f, 0.0f}).view({1, 5, 1});
  const at::Tensor y = residual_convolution(u, at::tensor({10.0f, 20.0f, 30.0f}).view({1, 3}));
  EXPECT_TRUE(at::allclose(y.flatten(), at::tensor({0.0f, 31.0f, 20.0f, 10.0f, 0.0f})));
}

// The first tap is the current token, and each token adds its own; 1/√(2K+1) with K = 4 is 1/3.
TEST(ShortConvolution, DynamicTapsBelongToTheTokenThatLooksBack) {
  const std::int64_t T = 5, G = 2, d = 3, K = 4, C = G * d;
  const at::Tensor u = normal({1, T, C}, 1), fixed = normal({K, C}, 2),
                   own = normal({1, T, G, K}, 3);
  const at::Tensor y = dynamic_convolution(u, fixed, own);
  for (std::int64_t t = 0; t < T; ++t)
    for (std::int64_t c = 0; c < C; ++c) {
      double sum = at3(u, 0, t, c);
      for (std::int64_t j = 0; j <= std::min(t, K - 1); ++j)
        sum += (fixed[j][c].item<double>() + at3(own[0], t, c / d, j)) * at3(u, 0, t - j, c);
      EXPECT_NEAR(at3(y, 0, t, c), sum / 3, 1e-5);
    }
}

TEST(RelativeLogits, BothBodiesEqualPlainLoops) {
  const int T = 11, H = 2, row = 4, n = 5, key_begin = 2, d_r = 3, extent = 4;
  const at::Tensor r = normal({T, H, d_r}, 1), profiles = normal({d_r, extent}, 2);
  const at::Tensor tensor =
      relative_logits(r.narrow(0, row, n), profiles, row, key_begin, row + n);  // [H, n, keys]
  const at::Tensor far = profiles.flip(1).contiguous();
  const std::int64_t stride = 9;
  for (int h = 0; h < H; ++h) {
    std::vector<float> scores(static_cast<std::size_t>(n * stride), 0.0f);
    add_relative_logits({r.const_data_ptr<float>() + row * r.stride(0) + h * r.stride(1),
                         r.stride(0), d_r, far.const_data_ptr<float>(), extent},
                        row, n, key_begin, scores.data(), stride);
    for (int i = row; i < row + n; ++i)
      for (int j = key_begin; j <= i; ++j) {
        double expected = 0;
        for (int k = 0; k < d_r && i - j < extent; ++k)
          expected += r[i][h][k].item<double>() * profiles[k][i - j].item<double>();
        EXPECT_NEAR(at3(tensor, h, i - row, j - key_begin), expected, 1e-6);
        EXPECT_NEAR(scores[static_cast<std::size_t>((i - row) * stride + j - key_begin)], expected,
                    1e-6);
      }
  }
}

TEST(Inkling, TheWrappersConfigGivesTheSameCapture) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/inkling2");
  const auto a = open_model(folder),
             b = with_config(folder, [](nlohmann::json&config) {
               config = {{"model_type", "inkling2"},
                         {"architectures", {"Inkling2ForConditionalGeneration"}},
                         {"text_config", nlohmann::json(config)}};
             });
  ASSERT_THAT(b->obstacles(), IsEmpty());
  EXPECT_EQ(
      first_difference(capture(*a, everything_of(folder)), capture(*b, everything_of(folder))), "");
}

TEST(Inkling, WindowedLayersWithOtherHeadsAreNamed) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/inkling2");
  const auto model =
      with_config(folder, [](nlohmann::json& config) { config["swa_num_attention_heads"] = 8; });
  ASSERT_FALSE(model->obstacles().empty());
  EXPECT_THAT(model->obstacles().front(), HasSubstr("swa_num_attention_heads"));
}

// Prompts in groups, weights kept or read again for each: the same to the bit, and a group's states
// count the closed sums.
TEST(Inkling, StreamedWeightsGiveTheSameCapture) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/inkling2");
  const auto model = open_model(folder);
  CaptureRequest kept = everything_of(folder);
  kept.runs.push_back(request_for({3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5}).runs.front());
  CaptureRequest together = kept, streamed = kept;
  kept.activation_budget = streamed.activation_budget =
      state_bytes(kept.runs.front().seq_len(), model->spec());  // a prompt a group
  streamed.weight_budget = 0;
  const std::string a = capture(*model, together), b = capture(*model, kept),
                    c = capture(*model, streamed);
  for (const char* run : {"/run0", "/run1"}) {
    EXPECT_EQ(first_difference(a, b, run), "") << run;
    EXPECT_EQ(first_difference(a, c, run), "") << run;
  }
  EXPECT_EQ(state_bytes(10, model->spec()), 4 * (3 + 3) * 10 * 48);
}

// E4M3 codes of 8 bits with exponents for 32 values, as bytes of either type, against the same
// weights as float32. 48 columns are one whole group and a half one.
struct Mxfp8 {
  std::string codes, exponents;
  std::vector<float> values;
};

Mxfp8 mxfp8_of(std::int64_t rows, std::int64_t cols) {
  Mxfp8 made;
  const std::int64_t groups = (cols + 31) / 32;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t g = 0; g < groups; ++g)
      made.exponents += static_cast<char>(127 - 3 + (r * groups + g) % 5);
    for (std::int64_t c = 0; c < cols; ++c) {
      const int code = static_cast<int>((r * 37 + c * 11) % 64) + 24, is_negative = (r + c) % 2;
      made.codes += static_cast<char>(code | is_negative << 7);
      const double value = std::ldexp(1 + (code & 7) / 8.0, (code >> 3) - 7);
      const double factor = std::ldexp(1.0, static_cast<int>((r * groups + c / 32) % 5) - 3);
      made.values.push_back(static_cast<float>((is_negative ? -value : value) * factor));
    }
  }
  return made;
}

TEST(Inkling, Mxfp8ExpertsAreTheirCodesTimesTheirFactors) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/inkling2");
  const auto source = open_model(folder);
  const ArchSpec& spec = source->spec();
  const std::int64_t E = spec.moe.n_experts, I = spec.moe.d_expert, D = spec.d_model;
  const auto write = [&](const char* factors, const std::string& name) {
    SafetensorsBytes file;
    for (const TensorInfo& info : source->checkpoint().tensors()) {
      const bool is_w13 = info.name.ends_with("w13_weight");
      if (!is_w13 && !info.name.ends_with("w2_weight")) {
        std::vector<float> values(static_cast<std::size_t>(info.n_elements()));
        source->checkpoint().read_rows(source->checkpoint().find(info.name), 0, info.n_rows(),
                                       values.data());
        file.floats(info.name, info.shape, values);
        continue;
      }
      const std::int64_t rows = is_w13 ? 2 * I : D, cols = is_w13 ? D : I;
      const Mxfp8 made = mxfp8_of(E * rows, cols);
      if (factors == nullptr) {
        file.floats(info.name, info.shape, made.values);
        continue;
      }
      file.tensor(info.name + "_scale", factors, {E, rows, (cols + 31) / 32}, made.exponents);
      file.tensor(info.name, "F8_E4M3", info.shape, made.codes);
    }
    const std::string made = scratch_folder() + "/" + name;
    fs::create_directory(made);
    file.write(made + "/model.safetensors");
    fs::copy_file(folder + "/config.json", made + "/config.json");
    return made;
  };
  const auto plain = open_model(write(nullptr, "plain"));
  const std::string expected = capture(*plain, everything_of(folder));
  for (const char* factors : {"F8_E8M0", "U8"}) {
    const auto packed = open_model(write(factors, factors));
    ASSERT_THAT(packed->obstacles(), IsEmpty()) << factors;
    EXPECT_EQ(first_difference(expected, capture(*packed, everything_of(folder))), "") << factors;
  }
}

}  // namespace
}  // namespace sinkscope::test
