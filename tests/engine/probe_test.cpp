// SPDX-License-Identifier: GPL-3.0-or-later
// Causal probes on trained models: the table that an independent implementation measured.
#include <gtest/gtest.h>

#include <map>
#include <string>

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
  const std::map<std::string, NameList> readers = {{"all_norms", {}},
                                                   {"attention_norms", {"ln1"}},
                                                   {"ffn_norms", {"ln2"}},
                                                   {"final_norm", {"ln_final"}}};
  std::vector<std::string> names;
  for (const auto& [reader, norms] : readers)
    for (const char* mode : {"mean", "zero", "direct", "denominator"}) {
      NormProbe probe;
      probe.mode = *probe_mode_named(mode);
      probe.dims = IndexSet({dim});
      probe.tokens = TokenSet::parse("ids:5-127");
      probe.norms = norms;
      request.variants.push_back({probe});
      names.push_back("/probe_dnll/" + reader + "/" + mode);
    }
  Progress progress;
  const auto got = engine().evaluate(*model, request, {std::stop_token(), progress});
  ASSERT_TRUE(got);
  const auto mean = [](const std::vector<std::vector<float>>& runs) {
    double sum = 0, n = 0;
    for (const auto& run : runs)
      for (float loss : run) sum += loss, ++n;
    return sum / n;
  };
  ASSERT_EQ(got->loss.size(), names.size() + 1);
  const double baseline = mean(got->loss[0]);
  EXPECT_NEAR(baseline, want.number("/", "mean_nll"), 1e-4);
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_NEAR(mean(got->loss[i + 1]) - baseline, want.doubles(names[i]).at(0), 0.005) << names[i];
    EXPECT_GE(mean(got->kl[i]), 0) << names[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, LabProbes, ::testing::Values("lab_baseline_0", "lab_baseline_1"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace sinkscope::test
