// SPDX-License-Identifier: GPL-3.0-or-later
// Evidence about outliers, from recordings of models whose numbers are known.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/capture_reader.h"
#include "core/rescale/report.h"
#include "tests/engine/captured.h"
#include "tests/engine/reference_model.h"
#include "tests/support/h5_reference.h"
#include "tests/support/shared_files.h"

namespace sinkscope::test {
namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[(values.size() - 1) / 2];
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
  const WeightRows weights = [&](const std::string& which, int layer,
                                 const std::function<void(const MatrixF&)>& visit) {
    const std::vector<Role> roles = which == "ln1"   ? std::vector{Role::q, Role::k, Role::v}
                                    : which == "ln2" ? std::vector{Role::gate, Role::up}
                                    : which == "o"   ? std::vector{Role::o}
                                                     : std::vector{Role::unembed};
    for (Role role : roles) {
      MatrixF rows(model->rows(role, layer), model->cols(role, layer));
      model->read_rows(role, layer, 0, rows.rows(), rows.data());
      visit(rows);
    }
  };
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

}  // namespace
}  // namespace sinkscope::test
