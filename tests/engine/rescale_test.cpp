// SPDX-License-Identifier: GPL-3.0-or-later
// Evidence about outliers, from recordings of models whose numbers are known.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "core/capture_reader.h"
#include "core/rescale/report.h"
#include "core/snapshot/rescaling_snapshot.h"
#include "tests/engine/captured.h"
#include "tests/engine/reference_model.h"
#include "tests/engine/rescale_support.h"
#include "tests/support/h5_reference.h"
#include "tests/support/shared_files.h"

namespace sinkscope::test {
namespace {

using ::testing::HasSubstr;

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[(values.size() - 1) / 2];
}

// [T, D] that the norm put out.
std::vector<double> output_of(const CaptureReader& reader, const std::string& run,
                              const NormEvidence& e) {
  return e.layer < 0 ? reader.read_f64(run, "residual/final_norm")
                     : tap(reader, run, e.role + ".hook_out", e.layer);
}

double square_at(const std::vector<double>& rows, std::size_t t, std::size_t width) {
  double sum = 0;
  for (std::size_t d = 0; d < width; ++d) sum += rows[t * width + d] * rows[t * width + d];
  return sum;
}

// Every share after a norm is that of the recorded output; how many of them the input's gains and
// the norm's formula would have had wrong by more than a thousandth.
int expect_recorded_shares(const CaptureReader& reader, const std::string& run,
                           const RescaleReport& report, std::size_t D) {
  int n_other = 0;
  for (const NormEvidence& e : report.norms) {
    const std::vector<double> y = output_of(reader, run, e);
    for (std::size_t t = 0; t < e.r2.size(); ++t) {
      const double peak = y[t * D + static_cast<std::size_t>(e.dim[t])];
      const double share = peak * peak / square_at(y, t, D);
      EXPECT_NEAR(e.share_after[t], share, 1e-6) << e.role << e.layer << " " << t;
      const double gain = e.gain_dim[t];
      const double formula = gain * gain * e.r2[t] / (square_at(y, t, D) / static_cast<double>(D));
      n_other += std::abs(formula - share) > 1e-3 ? 1 : 0;
    }
  }
  return n_other;
}

// α at the final norm for the residual-sink dimension, ordinary and trigger tokens apart.
TEST(Rescale, TrainedModelScalesOrdinaryTokensAndLeavesTriggers) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/lab_baseline_0");
  const H5Reference want(folder + "/expected.h5");
  const auto model = open_model(folder);
  const std::vector<std::int64_t> ids = want.integers("/sequences");  // [256, 33]
  CaptureRequest request = request_for({0});
  request.runs.clear();
  for (std::size_t s = 0; s < 256; ++s) {
    RunInput run;
    for (std::size_t t = 0; t < 32; ++t) run.token_ids.push_back(static_cast<int>(ids[s * 33 + t]));
    run.token_text.resize(32);
    request.runs.push_back(run);
  }
  const auto reader = CaptureReader::open(capture(*model, request));
  RescaleOptions options;
  options.dims = {static_cast<int>(want.number("/", "residual_sink_dim"))};
  std::vector<double> ordinary, trigger;
  for (std::size_t s = 0; s < 256; ++s) {
    const RescaleReport report = rescale_report(*reader, reader->runs()[s], options);
    ASSERT_EQ(report.norms.size(), 7u);
    const NormEvidence& last = report.norms.back();
    ASSERT_EQ(last.role, "ln_final");
    for (const NormEvidence& e : report.norms) EXPECT_EQ(e.n_above, 0) << e.role << e.layer;
    for (std::size_t t = 0; t < 32; ++t) {
      const auto id = ids[s * 33 + t];
      if (id >= 5)
        ordinary.push_back(last.alpha[t]);
      else if (id >= 1)
        trigger.push_back(last.alpha[t]);
    }
  }
  EXPECT_NEAR(median(ordinary), want.number("/", "alpha_ordinary_median"), 1e-3);
  EXPECT_NEAR(median(trigger), want.number("/", "alpha_trigger_median"), 1e-3);
}

// Shares after the norm and into the next linear layer against plain sums in double.
TEST(Rescale, SharesAreThoseOfTheTensors) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/llama");
  const auto model = open_model(folder);
  CaptureRequest request = request_for({3, 1, 4, 1, 5, 9, 2});
  request.record.all = request.record.maps = true;
  const auto reader = CaptureReader::open(capture(*model, request));
  const WeightRows weights = weights_of(*model);
  const RescaleReport report = rescale_report(*reader, "run0", {}, weights);
  EXPECT_TRUE(report.not_computed.empty());
  const int T = 7, D = model->spec().d_model;
  for (const NormEvidence& e : report.norms) {
    if (e.role != "ln2") continue;
    const auto y = reader->read_f64("run0", "taps/ln2.hook_out/values", {e.layer, 0, 0}, {1, T, D});
    for (int t = 0; t < T; ++t) {
      const auto at = [&](int d) { return y[static_cast<std::size_t>(t * D + d)]; };
      const int dim = e.dim[static_cast<std::size_t>(t)];
      double all = 0, whole = 0, column = 0;
      for (int d = 0; d < D; ++d) all += at(d) * at(d);
      EXPECT_NEAR(e.share_after[static_cast<std::size_t>(t)], at(dim) * at(dim) / all, 1e-5);
      for (Role role : {Role::gate, Role::up}) {
        MatrixF w(model->rows(role, e.layer), D);
        model->read_rows(role, e.layer, 0, w.rows(), w.data());
        for (Eigen::Index r = 0; r < w.rows(); ++r) {
          double sum = 0;
          for (int d = 0; d < D; ++d) sum += static_cast<double>(w(r, d)) * at(d);
          whole += sum * sum;
          column += static_cast<double>(w(r, dim)) * w(r, dim);
        }
      }
      EXPECT_NEAR(e.next_linear[static_cast<std::size_t>(t)],
                  std::abs(at(dim)) * std::sqrt(column / whole), 1e-4);
    }
  }
  // One head by hand: p ‖v_0‖ / Σ p ‖v‖ and ‖p W v_0‖ / ‖W z‖.
  const int H = model->spec().n_heads, G = model->spec().n_kv_heads, d = model->spec().head_dim;
  const HeadEvidence& e = report.heads[static_cast<std::size_t>(H + 1)];  // layer 1, head 1
  ASSERT_EQ(e.layer, 1);
  ASSERT_EQ(e.head, 1);
  const auto p = reader->read_f64("run0", "attention/pattern", {1, 1, 0, 0}, {1, 1, T, T});
  const auto v =
      reader->read_f64("run0", "taps/attn.hook_v/values", {1, 1 / (H / G), 0, 0}, {1, 1, T, d});
  MatrixF o(model->rows(Role::o, 1), model->cols(Role::o, 1));
  model->read_rows(Role::o, 1, 0, o.rows(), o.data());
  const auto norm = [&](int t) {
    double sum = 0;
    for (int c = 0; c < d; ++c)
      sum += v[static_cast<std::size_t>(t * d + c)] * v[static_cast<std::size_t>(t * d + c)];
    return std::sqrt(sum);
  };
  for (std::size_t i = 0; i < e.query.size(); ++i) {
    const int q = e.query[i];
    const double* row = &p[static_cast<std::size_t>(q * T)];
    double mass = 0, alone = 0, whole = 0;
    for (int j = 0; j <= q; ++j) mass += row[j] * norm(j);
    EXPECT_NEAR(e.share_after[i], row[0] * norm(0) / mass, 1e-5);
    for (Eigen::Index r = 0; r < o.rows(); ++r) {
      double z = 0, sink = 0;
      for (int c = 0; c < d; ++c) {
        const double w = o(r, d + c);
        sink += w * row[0] * v[static_cast<std::size_t>(c)];
        for (int j = 0; j <= q; ++j) z += w * row[j] * v[static_cast<std::size_t>(j * d + c)];
      }
      alone += sink * sink;
      whole += z * z;
    }
    EXPECT_NEAR(e.through_o[i], std::sqrt(alone / whole), 1e-4 * std::max(1.0, e.through_o[i]));
  }
}

// A gate stands between a norm and what it puts out: the share is the recorded output's, the part
// of the next linear layer too, and without a record there is none.
TEST(Rescale, SharesBehindAGatedNormAreThoseOfItsOutput) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/axk2");
  const auto model = open_model(folder);
  const auto D = static_cast<std::size_t>(model->spec().d_model);
  const WeightRows weights = weights_of(*model);
  const auto reader = record_all(*model, kIds);
  const RescaleReport all = rescale_report(*reader, "run0", {}, weights);
  EXPECT_GT(expect_recorded_shares(*reader, "run0", all, D), 20);
  const auto gated = std::find_if(all.norms.begin(), all.norms.end(),
                                  [](const auto& e) { return e.role == "ln1" && e.layer == 1; });
  ASSERT_NE(gated, all.norms.end());
  const std::vector<double> y = output_of(*reader, "run0", *gated);
  for (std::size_t t = 0; t < kIds.size(); ++t) {
    double whole = 0, column = 0;
    const auto dim = static_cast<std::size_t>(gated->dim[t]);
    weights("ln1", 1, [&](const MatrixF& w) {
      for (Eigen::Index r = 0; r < w.rows(); ++r) {
        double sum = 0;
        for (std::size_t d = 0; d < D; ++d)
          sum += static_cast<double>(w(r, static_cast<Eigen::Index>(d))) * y[t * D + d];
        whole += sum * sum;
        column += std::pow(static_cast<double>(w(r, static_cast<Eigen::Index>(dim))), 2);
      }
    });
    EXPECT_NEAR(gated->next_linear[t], std::abs(y[t * D + dim]) * std::sqrt(column / whole), 1e-4);
  }

  for (const bool with_stream : {true, false}) {
    CaptureRequest request = request_for(kIds);
    request.record.stream = with_stream;
    const auto less = CaptureReader::open(capture(*model, request));
    const RescaleReport report = rescale_report(*less, "run0", {}, weights);
    ASSERT_EQ(report.norms.size(), all.norms.size());
    for (std::size_t n = 0; n < report.norms.size(); ++n) {
      const NormEvidence& e = report.norms[n];
      const bool has_gate =
          model->spec().has_norm_gate(e.layer, e.role == "ln1"   ? Role::ln1
                                               : e.role == "ln2" ? Role::ln2
                                                                 : Role::ln_final);
      EXPECT_EQ(e.alpha, all.norms[n].alpha);
      EXPECT_EQ(e.next_linear.empty(), has_gate || !with_stream) << e.role << e.layer;
      for (std::size_t t = 0; t < e.r2.size(); ++t)
        if (has_gate)
          EXPECT_TRUE(std::isnan(e.share_after[t])) << e.role << e.layer;
        else
          EXPECT_NEAR(e.share_after[t], all.norms[n].share_after[t], 1e-5) << e.role << e.layer;
    }
    EXPECT_THAT(report.not_computed.at("share after ln1"), HasSubstr("gated norms"));
    EXPECT_FALSE(report.not_computed.contains("share after ln_final"));
    // Nothing is drawn or said of a share that is not known.
    const RescalingSnapshot seen = rescaling_snapshot(*less, {"run0", {}, 0}, weights);
    for (const NormCloud& cloud : seen.norms) {
      EXPECT_EQ(cloud.bound_rest.size() + cloud.bound_first.size(),
                cloud.layers.size() * kIds.size());
      for (const RescalingPoint& point : cloud.shares) EXPECT_TRUE(std::isfinite(point.y));
    }
    EXPECT_TRUE(seen.norms[0].shares.empty());
    EXPECT_FALSE(seen.norms.back().shares.empty());
    EXPECT_THAT(seen.suggestion, HasSubstr("Attention norms: the first token's largest"));
    EXPECT_THAT(seen.suggestion, HasSubstr("before, an unknown share after."));
    EXPECT_THAT(seen.suggestion, ::testing::Not(HasSubstr("nan")));
  }
}

// Under an edit of a norm neither its formula nor its factors hold; what was recorded does.
TEST(Rescale, SharesOfEditedNormsAreThoseOfTheirOutput) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/llama");
  const auto model = open_model(folder);
  const auto D = static_cast<std::size_t>(model->spec().d_model);
  for (const char* edit :
       {R"({"edit":"norm.replace","with":"none","norms":["ln2"]})",
        R"({"edit":"norm.probe","mode":"zero","dims":"0-30","norms":["ln2"]})"}) {
    SCOPED_TRACE(edit);
    const auto reader = record_all(*model, kIds, edit);
    const RescaleReport report = rescale_report(*reader, "run0_edit0", {}, weights_of(*model));
    EXPECT_GT(expect_recorded_shares(*reader, "run0_edit0", report, D), 3);
    for (const NormEvidence& e : report.norms)
      for (std::size_t t = 0; t < e.r2.size(); ++t) {
        EXPECT_EQ(std::isnan(e.alpha[t]), e.role == "ln2");
        EXPECT_EQ(std::isnan(e.elasticity[t]), e.role == "ln2");
      }
    EXPECT_TRUE(report.not_computed.contains("rescale factors at ln2"));
    EXPECT_FALSE(report.not_computed.contains("rescale factors at ln1"));

    CaptureRequest request = request_for(kIds);
    request.record.stream = true;
    add_twin(request, edit);
    const auto less = CaptureReader::open(capture(*model, request));
    const RescaleReport short_of = rescale_report(*less, "run0_edit0", {}, weights_of(*model));
    for (const NormEvidence& e : short_of.norms) {
      EXPECT_EQ(std::isnan(e.share_after[2]), e.role == "ln2") << e.role;
      EXPECT_EQ(e.next_linear.empty(), e.role == "ln2") << e.role;
    }
    EXPECT_THAT(short_of.not_computed.at("share after ln2"), HasSubstr("edited norms"));
    const RescaleReport own = rescale_report(*less, "run0", {}, weights_of(*model));
    for (const NormEvidence& e : own.norms) EXPECT_FALSE(std::isnan(e.share_after[2]));
  }
}

}  // namespace
}  // namespace sinkscope::test
