// SPDX-License-Identifier: GPL-3.0-or-later
// Trained models with real sinks: numbers that transformers gives for them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>

#include "core/capture_reader.h"
#include "core/sink_report.h"
#include "tests/engine/captured.h"
#include "tests/support/demo_model.h"
#include "tests/support/h5_reference.h"
#include "tests/support/shared_files.h"
#include "tests/support/sink_oracles.h"

namespace sinkscope::test {
namespace {

class Lab : public ::testing::TestWithParam<std::string> {};

// 256 sequences in one capture; the first 32 ids are the input, all 33 are needed for the loss.
CaptureRequest lab_request(const H5Reference& want, std::size_t length) {
  const std::vector<std::int64_t> ids = want.integers("/sequences");  // [256, 33]
  CaptureRequest request = request_for({0});
  request.runs.clear();
  for (std::size_t s = 0; s < 256; ++s) {
    RunInput run;
    for (std::size_t t = 0; t < length; ++t)
      run.token_ids.push_back(static_cast<int>(ids[s * 33 + t]));
    run.token_text.resize(length);
    request.runs.push_back(std::move(run));
  }
  return request;
}

TEST_P(Lab, SinkScoresAndResidualSinkOverAllSequences) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/" + GetParam());
  const H5Reference want(folder + "/expected.h5");
  const auto model = open_model(folder);
  const auto reader = CaptureReader::open(capture(*model, lab_request(want, 32)));
  SinkOptions options;
  options.at = PositionFilter::parse("ids:5-127");
  const SinkReport report = sink_report(*reader, reader->runs(), options);
  ASSERT_EQ(report.runs.size(), 256u);
  expect_lab_sinks(report, want);
}

TEST_P(Lab, LossOfEveryTokenAgrees) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/" + GetParam());
  const H5Reference want(folder + "/expected.h5");
  const auto model = open_model(folder);
  const H5Reference got(capture(*model, lab_request(want, 33)));
  const std::vector<double> nll = want.doubles("/nll");  // [256, 32]
  for (std::size_t s = 0; s < 256; ++s) {
    const std::vector<float> loss = got.floats("/run" + std::to_string(s) + "/logits/loss");
    ASSERT_EQ(loss.size(), 32u);
    for (std::size_t t = 0; t < 32; ++t)
      ASSERT_NEAR(loss[t], nll[s * 32 + t], 1e-3 * std::max(0.1, nll[s * 32 + t])) << s << ' ' << t;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Lab, ::testing::Values("lab_baseline_0", "lab_baseline_1"),
                         [](const auto& test) { return test.param; });

std::vector<int> ids_of_file(const std::string& path) {
  std::ifstream file(path);
  std::vector<int> ids;
  for (std::string id; std::getline(file, id, ',');) ids.push_back(std::stoi(id));
  return ids;
}

void expect_relative(const std::vector<double>& got, const std::vector<double>& want,
                     double tolerance, double floor, const char* what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], want[i], tolerance * std::max(std::fabs(want[i]), floor))
        << what << ' ' << i;
}

TEST(SmolLM2, SinksMaximaKurtosisAndLossesAgree) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/smollm2");
  SINKSCOPE_REQUIRE_DEMO_MODEL(path);
  const H5Reference want(folder + "/expected.h5");
  const auto model = open_model(path);
  const std::string file = capture(*model, request_for(ids_of_file(folder + "/ids512.txt")));
  const H5Reference got(file);
  const auto reader = CaptureReader::open(file);
  const SinkReport report = sink_report(*reader, {"run0"}, {});
  expect_smollm2_attention(report, want);
  expect_smollm2_residual(report, want);

  const std::vector<double> mass = got.doubles("/run0/attention/key_mass");  // [30, 9, 512]
  const std::vector<double> gu = want.doubles("/gu_score");                  // [30, 9, 64]
  for (std::size_t cell = 0; cell < 270; ++cell)
    for (std::size_t k = 0; k < 64; ++k)
      ASSERT_NEAR(mass[cell * 512 + k] / static_cast<double>(512 - k), gu[cell * 64 + k],
                  1e-3 * std::max(gu[cell * 64 + k], 1e-3));

  const std::vector<double> max_abs = want.doubles("/max_abs");
  EXPECT_NEAR(*std::max_element(max_abs.begin(), max_abs.end()), 25804.7, 0.1);

  const std::vector<double> nll = want.doubles("/nll");
  expect_relative(got.doubles("/run0/logits/loss"), nll, 1e-3, 0.1, "loss");
  double mean = 0;
  for (double loss : got.doubles("/run0/logits/loss")) mean += loss / 511;
  EXPECT_NEAR(mean / 2.9356, 1, 1e-4);
}

}  // namespace
}  // namespace sinkscope::test
