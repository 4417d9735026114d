// SPDX-License-Identifier: GPL-3.0-or-later
// What `sinks` and the window say about live mechanisms, against means over what transformers
// computes: the gates of A.X K2 and Inkling 2, sink shares, depth weights.
#include <gmock/gmock.h>

#include <cmath>

#include "core/mechanisms.h"
#include "tests/engine/captured.h"
#include "tests/support/h5_reference.h"
#include "tests/support/shared_files.h"

namespace sinkscope::test {
namespace {

using ::testing::ElementsAre;

constexpr double kClose = 1e-5;

struct Captured {
  std::unique_ptr<ModelFiles> model;
  std::unique_ptr<CaptureReader> reader;
  Mechanisms mechanisms;
};

// A `stats` capture: nothing beyond what every capture has.
Captured captured(const std::string& folder) {
  Captured result{open_model(folder), nullptr, {}};
  CaptureRequest request = request_for(H5Reference(folder + "/expected.h5").ints("/input_ids"));
  request.record.stream = false;
  result.reader = CaptureReader::open(capture(*result.model, request));
  result.mechanisms = read_mechanisms(*result.reader, "run0", result.model->spec().n_layers);
  return result;
}

// Mean over the rows of x [n, width].
std::vector<double> column_means(const std::vector<float>& x, std::size_t width) {
  std::vector<double> means(width, 0.0);
  for (std::size_t i = 0; i < x.size(); ++i) means[i % width] += x[i];
  for (double& mean : means) mean /= static_cast<double>(x.size() / width);
  return means;
}

double correlation(const std::vector<float>& y, const std::vector<float>& gate, std::size_t width,
                   std::size_t d) {
  std::vector<double> a, b;
  for (std::size_t i = d; i < y.size(); i += width) {
    a.push_back(std::abs(static_cast<double>(y[i])));
    b.push_back(gate[i]);
  }
  double mean_a = 0, mean_b = 0, ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    mean_a += a[i] / static_cast<double>(a.size());
    mean_b += b[i] / static_cast<double>(a.size());
  }
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - mean_a) * (b[i] - mean_b);
    aa += (a[i] - mean_a) * (a[i] - mean_a);
    bb += (b[i] - mean_b) * (b[i] - mean_b);
  }
  return ab / std::sqrt(aa * bb);
}

// [T, H·d] -> mean of each head.
void expect_attention_gates(const Captured& got, const H5Reference& want) {
  const ArchSpec& spec = got.model->spec();
  ASSERT_EQ(got.mechanisms.gate_layers.size(), static_cast<std::size_t>(spec.n_layers));
  for (int layer = 0; layer < spec.n_layers; ++layer) {
    const auto width = static_cast<std::size_t>(spec.n_heads * spec.d_value_of(layer));
    const std::vector<double> means =
        column_means(want.floats("/attn_gate/" + std::to_string(layer)), width);
    for (int h = 0; h < spec.n_heads; ++h) {
      double mean = 0;
      for (int d = 0; d < spec.d_value_of(layer); ++d)
        mean += means[static_cast<std::size_t>(h * spec.d_value_of(layer) + d)] /
                spec.d_value_of(layer);
      EXPECT_NEAR(got.mechanisms.attn_gate(layer, h), mean, kClose) << layer << " " << h;
    }
  }
}

TEST(MechanismOracles, GatesOfAxk2) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/axk2");
  const H5Reference want(folder + "/expected.h5");
  const Captured got = captured(folder);
  const auto width = static_cast<std::size_t>(got.model->spec().d_model);
  EXPECT_EQ(got.mechanisms.norm_gates.size(), want.children("/norm_gate").size());
  for (const NormGate& gate : got.mechanisms.norm_gates) {
    const std::string module =
        "model.layers." + std::to_string(gate.layer) + "." +
        (gate.role == "ln1" ? "input_layernorm" : "post_attention_layernorm");
    const std::vector<float> expected = want.floats("/norm_gate/" + module),
                             y = want.floats("/norm/" + module + ".norm");
    const std::vector<double> means = column_means(expected, width);
    for (std::size_t d = 0; d < width; ++d) {
      EXPECT_NEAR(gate.mean[d], means[d], kClose) << module << " " << d;
      EXPECT_NEAR(gate.corr[d], correlation(y, expected, width, d), 2e-3) << module << " " << d;
    }
  }
  expect_attention_gates(got, want);
  EXPECT_TRUE(got.mechanisms.sink_layers.empty());
}

TEST(MechanismOracles, GatesSinkSharesAndDepthWeightsOfInkling) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/inkling2");
  const H5Reference want(folder + "/expected.h5");
  const Captured got = captured(folder);
  expect_attention_gates(got, want);
  const std::vector<float> shares = want.floats("/attention_sink");  // [L, H, T]
  const auto H = static_cast<std::size_t>(got.model->spec().n_heads),
             T = shares.size() / got.mechanisms.sink_layers.size() / H;
  for (std::size_t i = 0; i < shares.size() / T; ++i) {
    double mean = 0;
    for (std::size_t t = 0; t < T; ++t) mean += shares[i * T + t] / static_cast<double>(T);
    EXPECT_NEAR(got.mechanisms.sink_share(static_cast<Eigen::Index>(i / H),
                                          static_cast<Eigen::Index>(i % H)),
                mean, kClose);
  }
  EXPECT_THAT(got.mechanisms.block_layers, ElementsAre(0, 2, 4));
  std::size_t compared = 0;
  for (const DepthMixUse& mix : got.mechanisms.depth) {
    const bool is_attention = mix.target.find("depth_attn") != std::string::npos;
    const std::string site =
        mix.layer < 0 ? "final" : std::to_string(mix.layer) + (is_attention ? ".attn" : ".mlp");
    const std::string path = "/attnres/" + site + "/weights";  // [Q, T, S]
    const std::vector<float> all = want.floats(path);
    const auto S = static_cast<std::size_t>(want.dims(path)[2]);
    const std::size_t q = mix.target.find("(keys)") != std::string::npos     ? 1
                          : mix.target.find("(values)") != std::string::npos ? 2
                                                                             : 0;
    const std::vector<float> rows(all.begin() + static_cast<std::ptrdiff_t>(q * T * S),
                                  all.begin() + static_cast<std::ptrdiff_t>((q + 1) * T * S));
    const std::vector<double> means = column_means(rows, S);
    ASSERT_EQ(mix.use.mean.size(), S) << mix.target;
    for (std::size_t s = 0; s < S; ++s)
      EXPECT_NEAR(mix.use.mean[s], means[s], kClose) << mix.target << " " << s;
    ++compared;
  }
  EXPECT_EQ(compared, 4 + 5 + 1 + 2 * 2U);  // two blocks read three mixes
}

TEST(MechanismOracles, StatesOfLinearAttentionAreRecordedEverywhere) {
  for (const char* name : {"qwen3_next", "qwen3_5", "kimi_linear"}) {
    SINKSCOPE_REQUIRE_SHARED(folder, std::string("oracles/") + name);
    const Captured got = captured(folder);
    const ArchSpec& spec = got.model->spec();
    std::vector<int> linear;
    for (int layer = 0; layer < spec.n_layers; ++layer)
      if (spec.mixer(layer) == Mixer::delta) linear.push_back(layer);
    EXPECT_EQ(got.mechanisms.linear_layers, linear) << name;
    EXPECT_EQ(got.mechanisms.state_norm.cols(), spec.delta.n_value_heads) << name;
    EXPECT_GT(got.mechanisms.state_norm.minCoeff(), 0) << name;
  }
}

}  // namespace
}  // namespace sinkscope::test
