// SPDX-License-Identifier: GPL-3.0-or-later
// Bounds, clips and norms behind the halves, against plain loops.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "core/capture_reader.h"
#include "core/rescale/report.h"
#include "tests/engine/captured.h"
#include "tests/engine/rescale_support.h"
#include "tests/support/shared_files.h"

namespace sinkscope::test {
namespace {

using ::testing::HasSubstr;

// Without its norms a model's states lie above what an RMSNorm could put out, and the report
// counts them: bounds from the stream and the gains, in plain loops.
TEST(Rescale, CountsPointsAboveTheirBound) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/llama");
  const auto model = open_model(folder);
  const int D = model->spec().d_model, L = model->spec().n_layers,
            T = static_cast<int>(kIds.size());
  const auto reader = record_all(*model, kIds, R"({"edit":"norm.replace","with":"none"})");
  const RescaleReport report = rescale_report(*reader, "run0_edit0", {});
  int all_above = 0;
  for (const NormEvidence& e : report.norms) {
    const int site = e.role == "ln1" ? 2 * e.layer : e.role == "ln2" ? 2 * e.layer + 1 : 2 * L;
    const auto h = reader->read_f64("run0_edit0", "residual/stream", {site, 0, 0}, {1, T, D});
    const std::vector<int> rows = reader->read_i32("run0", "norm/" + e.role + "/layers");
    const auto row = std::find(rows.begin(), rows.end(), e.layer) - rows.begin();
    const auto gain = reader->read_f64("run0", "norm/" + e.role + "/gain", {row, 0}, {1, D});
    int above = 0;
    for (int t = 0; t < T; ++t) {
      const double* x = &h[static_cast<std::size_t>(t * D)];
      int dim = 0;
      double square = 0, most = 0, others = 0;
      for (int d = 0; d < D; ++d) {
        square += x[d] * x[d];
        if (std::abs(x[d]) > std::abs(x[dim])) dim = d;
      }
      for (int d = 0; d < D; ++d) {
        const double size = std::abs(gain[static_cast<std::size_t>(d)]);
        most = std::max(most, size);
        if (d != dim) others = std::max(others, size);
      }
      const double r2 = x[dim] * x[dim] / square,
                   own = std::abs(gain[static_cast<std::size_t>(dim)]);
      const double bound = std::min(std::sqrt(most * most * (1 - r2) + own * own * r2),
                                    std::sqrt(others * others * (1 - r2) + own * own * r2));
      above += std::sqrt(square / D) > bound ? 1 : 0;  // y = h
    }
    EXPECT_EQ(e.n_above, above) << e.role << e.layer;
    all_above += above;
  }
  ASSERT_GT(all_above, 0);
  ASSERT_LT(all_above, T * (2 * L + 1));
  EXPECT_THAT(rescale_text(report),
              HasSubstr(std::to_string(all_above) + " of " + std::to_string(T * (2 * L + 1)) +
                        " norm outputs lie ABOVE a bound"));
}

// The factor that clipping gives all other dimensions, predicted from the recorded numbers and
// measured in a twin that clips the stream in front of the final norm.
TEST(Rescale, PredictedGrowthUnderAClipIsTheMeasuredOne) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/llama");
  const auto model = open_model(folder);
  const int D = model->spec().d_model, L = model->spec().n_layers,
            T = static_cast<int>(kIds.size());
  const auto plain = CaptureReader::open(capture(*model, [] {
    CaptureRequest request = request_for(kIds);
    request.record.stream = true;
    return request;
  }()));
  const auto h = plain->read_f64("run0", "residual/stream", {2 * L, 0, 0}, {1, T, D});
  for (const int t : {1, 5}) {
    std::vector<double> sizes;
    for (int d = 0; d < D; ++d) sizes.push_back(std::abs(h[static_cast<std::size_t>(t * D + d)]));
    const auto peak = std::max_element(sizes.begin(), sizes.end()) - sizes.begin();
    std::sort(sizes.rbegin(), sizes.rend());
    const double limit = sizes[1] + 0.2 * (sizes[0] - sizes[1]);  // of this token one value only
    CaptureRequest request = request_for(kIds);
    request.record.stream = true;
    add_twin(request, R"({"edit":"residual.clip","limit":)" + std::to_string(limit) +
                          R"(,"sites":["blocks.)" + std::to_string(L - 1) +
                          R"(.hook_resid_post"]})");
    const auto reader = CaptureReader::open(capture(*model, request));
    RescaleOptions options;
    options.clip = std::stod(std::to_string(limit));
    for (const bool by_name : {false, true}) {
      if (by_name) options.dims = {static_cast<int>(peak)};
      const RescaleReport report = rescale_report(*reader, "run0", options);
      const NormEvidence& last = report.norms.back();
      ASSERT_EQ(last.role, "ln_final");
      const double predicted = last.clip_growth[static_cast<std::size_t>(t)];
      EXPECT_GT(predicted, 1.0005);
      const auto before = reader->read_f64("run0", "residual/final_norm"),
                 after = reader->read_f64("run0_edit0", "residual/final_norm");
      for (int d = 0; d < D; ++d) {
        const auto at = static_cast<std::size_t>(t * D + d);
        if (d == peak) {
          EXPECT_LT(std::abs(after[at]), std::abs(before[at]));
        } else {
          EXPECT_NEAR(after[at], predicted * before[at], 2e-6 * std::abs(before[at]) + 1e-9) << d;
        }
      }
    }
  }
}

// What a norm behind a half reads, in double: W x of the recorded input x of the last matrix.
std::vector<double> half_output(const ModelFiles& model, const CaptureReader& reader, int layer,
                                bool is_attention) {
  const Role role = is_attention ? Role::o : Role::down;
  const std::int64_t D = model.rows(role, layer), n = model.cols(role, layer);
  std::vector<float> w(static_cast<std::size_t>(D * n));
  model.read_rows(role, layer, 0, D, w.data());
  const std::string tap = is_attention ? "taps/attn.hook_z/values" : "taps/mlp.hook_post/values";
  const auto dims = reader.dims("run0", tap);  // [L, H, T, d] or [L, T, n]
  const std::int64_t T = dims[dims.size() - 2], H = is_attention ? dims[1] : 1, d = n / H;
  std::vector<std::int64_t> start(dims.size(), 0), count = dims;
  start[0] = layer;
  count[0] = 1;
  const auto x = reader.read_f64("run0", tap, start, count);
  std::vector<double> out(static_cast<std::size_t>(T * D), 0);
  for (std::int64_t t = 0; t < T; ++t)
    for (std::int64_t o = 0; o < D; ++o)
      for (std::int64_t i = 0; i < n; ++i)
        out[static_cast<std::size_t>(t * D + o)] +=
            double{w[static_cast<std::size_t>(o * n + i)]} *
            x[static_cast<std::size_t>((i / d * T + t) * d + i % d)];
  return out;
}

class PostNorms : public ::testing::TestWithParam<const char*> {};

// Shares and factors of the norms behind the halves, against what those read by the model's
// weights.
TEST_P(PostNorms, HaveEvidenceOfWhatTheHalfPutsOut) {
  SINKSCOPE_REQUIRE_SHARED(folder, std::string("oracles/") + GetParam());
  const auto model = open_model(folder);
  CaptureRequest request = request_for({3, 17, 5, 30, 5, 9, 21});
  request.record.all = true;
  request.record.sites = {"mlp.hook_post"};
  const auto reader = CaptureReader::open(capture(*model, request));
  const int D = model->spec().d_model, L = model->spec().n_layers;
  RescaleOptions chosen;
  chosen.dims = {5, 11};
  const RescaleReport own = rescale_report(*reader, "run0", {}),
                      of_two = rescale_report(*reader, "run0", chosen);
  int n_seen = 0;
  for (const NormEvidence& e : own.norms) {
    EXPECT_EQ(e.n_above, 0) << e.role << ' ' << e.layer;
    EXPECT_EQ(e.n_not_finite, 0);
    if (!e.role.ends_with("_post")) continue;
    ++n_seen;
    const std::vector<double> x = half_output(*model, *reader, e.layer, e.role == "ln1_post");
    const auto two = std::find_if(of_two.norms.begin(), of_two.norms.end(), [&](const auto& other) {
      return other.role == e.role && other.layer == e.layer;
    });
    ASSERT_NE(two, of_two.norms.end());
    for (std::size_t t = 0; t < e.r2.size(); ++t) {
      double all = 0, most = 0;
      int at = 0;
      const auto square = [&](int d) {
        const double h = x[t * static_cast<std::size_t>(D) + static_cast<std::size_t>(d)];
        return h * h;
      };
      for (int d = 0; d < D; ++d) {
        all += square(d);
        if (square(d) > most) most = square(d), at = d;
      }
      EXPECT_EQ(e.dim[t], at);
      EXPECT_NEAR(e.r2[t], most / all, 1e-5);
      EXPECT_NEAR(e.alpha[t], std::sqrt(((all - most) / D + e.eps) / (all / D + e.eps)), 1e-5);
      EXPECT_NEAR(two->r2[t], (square(5) + square(11)) / all, 1e-5);
      EXPECT_LE(e.output_rms[t], e.bound_5[t] * (1 + 1e-5));
    }
    EXPECT_TRUE(e.next_linear.empty());
  }
  EXPECT_EQ(n_seen, 2 * L);
}

INSTANTIATE_TEST_SUITE_P(Models, PostNorms, ::testing::Values("olmo2", "olmo3", "gemma2", "gemma3"),
                         [](const auto& test) { return std::string(test.param); });

// A capture that cannot answer says so.
TEST(Rescale, NamesWhatItLeavesOut) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/olmo2");
  const auto model = open_model(folder);
  std::vector<int> ids;
  for (int t = 0; t < 70; ++t) ids.push_back(3 + t * 7 % 29);
  const auto reader = CaptureReader::open(capture(*model, request_for(ids)));
  const auto at = [&](int key) {
    RescaleOptions options;
    options.key = key;
    return rescale_report(*reader, "run0", options);
  };
  EXPECT_THAT(at(0).not_computed.at("the norm q_norm"), HasSubstr("queries before the norm"));
  EXPECT_THAT(at(0).not_computed.at("the norm k_norm"), HasSubstr("attn.hook_k is behind it"));
  EXPECT_FALSE(at(0).not_computed.contains("the norm ln1_post"));
  RescaleOptions chosen;
  chosen.dims = {3};
  EXPECT_THAT(
      rescale_report(*reader, "run0", chosen).not_computed.at("chosen dimensions at ln1_post"),
      HasSubstr("--record all"));
  EXPECT_FALSE(at(0).not_computed.contains("attention on the key"));
  const auto n_heads = static_cast<std::size_t>(model->spec().n_heads * model->spec().n_layers);
  EXPECT_EQ(at(62).heads.size(), n_heads);
  for (const int key : {63, 65}) {
    EXPECT_TRUE(at(key).heads.empty());
    EXPECT_THAT(at(key).not_computed.at("attention on the key"), HasSubstr("--record maps"));
  }
  EXPECT_THAT(at(69).not_computed.at("attention on the key"), HasSubstr("the last"));
  CaptureRequest request = request_for(ids);
  request.record.maps = true;
  const auto maps = CaptureReader::open(capture(*model, request));
  RescaleOptions options;
  options.key = 65;
  const RescaleReport report = rescale_report(*maps, "run0", options);
  ASSERT_EQ(report.heads.size(), n_heads);
  EXPECT_EQ(report.heads[0].query, (std::vector<int>{66, 67, 68, 69}));
}

}  // namespace
}  // namespace sinkscope::test
