// SPDX-License-Identifier: GPL-3.0-or-later
// Causal probes on trained models: the table that an independent implementation measured.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/what_if/probe_table.h"
#include "tests/engine/captured.h"
#include "tests/support/h5_reference.h"
#include "tests/support/shared_files.h"

namespace sinkscope::test {
namespace {

class LabProbes : public ::testing::TestWithParam<std::string> {};

TEST_P(LabProbes, LossPerReaderAndModeAgrees) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/" + GetParam());
  const H5Reference want(folder + "/expected.h5");
  const auto model = open_model(folder);
  const int dim = static_cast<int>(want.number("/", "residual_sink_dim"));
  const std::vector<std::int64_t> ids = want.integers("/sequences");  // [256, 33]
  EvaluateRequest request;
  request.device = "cpu";
  request.threads = test_threads();
  for (std::size_t s = 0; s < 256; ++s) {
    RunInput run;
    for (std::size_t t = 0; t < 33; ++t) run.token_ids.push_back(static_cast<int>(ids[s * 33 + t]));
    request.runs.push_back(std::move(run));
  }
  ProbeTable table;
  table.rows = planned_probes(
      probe_readers(model->spec().n_layers, false), {PositionFilter::parse("ids:5-127")},
      {ProbeMode::mean, ProbeMode::zero, ProbeMode::direct, ProbeMode::denominator});
  for (const ProbeRow& row : table.rows) request.variants.push_back(probe_edits(row, {dim}, 3));
  Progress progress;
  const auto got = engine().evaluate(*model, request, {std::stop_token(), progress});
  ASSERT_TRUE(got);
  const auto mean = [](const std::vector<std::vector<float>>& runs) {
    double sum = 0, n = 0;
    for (const auto& run : runs)
      for (float loss : run) sum += loss, ++n;
    return sum / n;
  };
  ASSERT_EQ(got->loss.size(), table.rows.size() + 1);
  const double baseline = mean(got->loss[0]);
  EXPECT_NEAR(baseline, want.number("/", "mean_nll"), 1e-4);
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    ProbeRow& row = table.rows[i];
    row.delta_loss = mean(got->loss[i + 1]) - baseline;
    EXPECT_GE(mean(got->kl[i]), 0);
    if (row.is_control) continue;
    std::string reader = row.reader.name == "FFN norms" ? "ffn_norms" : row.reader.name;
    std::replace(reader.begin(), reader.end(), ' ', '_');
    const std::string name = "/probe_dnll/" + reader + "/" + name_of(row.mode);
    EXPECT_NEAR(row.delta_loss, want.doubles(name).at(0), 0.005) << name;
  }
  // The same dimension, three readers, two roles: on every seed.
  const std::vector<ProbeVerdict> verdicts = probe_verdicts(table);
  ASSERT_EQ(verdicts.size(), 4U);
  EXPECT_EQ(verdicts[1].role, "flag") << verdicts[1].sentence;
  EXPECT_EQ(verdicts[2].role, "rescaler") << verdicts[2].sentence;
  EXPECT_EQ(verdicts[3].role, "rescaler") << verdicts[3].sentence;
}

INSTANTIATE_TEST_SUITE_P(Seeds, LabProbes, ::testing::Values("lab_baseline_0", "lab_baseline_1"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace sinkscope::test
