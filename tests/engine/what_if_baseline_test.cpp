// SPDX-License-Identifier: GPL-3.0-or-later
// Twins whose baseline is another capture, means over a calibration, variants in batches.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/capture_reader.h"
#include "core/error.h"
#include "tests/engine/captured.h"
#include "tests/engine/what_if_support.h"
#include "tests/support/h5_reference.h"
#include "tests/support/shared_files.h"

namespace sinkscope::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<int> kOther = {4, 4, 8, 19, 1};
const std::string kEdit =
    R"([{"edit":"residual.clip","limit":0.4},{"edit":"attention.mask_key","keys":[0]}])";

RunInput prompt(const std::vector<int>& ids) {
  RunInput run;
  run.token_ids = ids;
  run.token_text.resize(ids.size());
  return run;
}

CaptureRequest two_runs() {
  CaptureRequest request = request_for(kEditedIds);
  request.runs.push_back(prompt(kOther));
  request.record.maps = true;
  return request;
}

void add_twins(CaptureRequest& request, const std::string& baseline_file) {
  std::vector<RunInput> twins = request.runs;
  for (std::size_t r = 0; r < twins.size(); ++r) {
    twins[r].edit_of = static_cast<int>(r);
    twins[r].what_if = kEdit;
    twins[r].baseline_file = baseline_file;
  }
  if (!baseline_file.empty()) request.runs.clear();
  request.runs.insert(request.runs.end(), twins.begin(), twins.end());
}

// The same numbers whether the baseline runs beside the twin, lies in another file with its final
// norm, or lies there without and is run again.
TEST(WhatIfBaseline, ATwinIsTheSameWhereverItsBaselineIs) {
  const auto model = open_model(random_tiny_model());
  CaptureRequest together = two_runs();
  add_twins(together, "");
  const std::string joint = capture(*model, together);

  CaptureRequest alone = two_runs();
  const std::string baseline = capture(*model, alone);
  const auto before = CaptureReader::open(baseline);
  add_twins(alone, "baseline.h5");
  const std::string again = capture(*model, alone);
  for (const char* run : {"run0", "run1"})
    alone.baseline_final_norms.push_back(before->read_f32(run, "residual/final_norm"));
  const std::string known = capture(*model, alone);

  for (const std::string& path : {again, known})
    for (const char* run : {"/run0_edit0", "/run1_edit0"})
      EXPECT_EQ(first_difference(joint, path, run), "") << path;
  const auto reader = CaptureReader::open(known);
  EXPECT_THAT(reader->runs(), ElementsAre("run0_edit0", "run1_edit0"));
  EXPECT_THAT(reader->edits("run1"), ElementsAre("run1_edit0"));
  EXPECT_EQ(reader->default_run(), "run0_edit0");
  EXPECT_EQ(reader->text_attribute("run1_edit0", "", "baseline_file"), "baseline.h5");
  EXPECT_EQ(reader->text_attribute("run1_edit0", "", "input_sha256"), input_sha256(kOther));
  EXPECT_FALSE(reader->has_attribute("run1_edit0", "", "baseline"));
  EXPECT_EQ(reader->input("run1_edit0").baseline_file, "baseline.h5");
  EXPECT_EQ(reader->model("run1_edit0").fingerprint, before->model("run0").fingerprint);
  const auto kl = reader->read_f64("run0_edit0", "compare/kl");
  EXPECT_GT(*std::max_element(kl.begin(), kl.end()), 1e-4);
}

// ln p of every token after one position, in double.
std::vector<double> log_softmax(const std::vector<double>& logits) {
  const double top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (double z : logits) sum += std::exp(z - top);
  std::vector<double> out;
  for (double z : logits) out.push_back(z - top - std::log(sum));
  return out;
}

// Against the whole distributions that two captures hold: Σ p (ln p − ln q), and −ln p of what
// came.
TEST(WhatIfBaseline, KlAndLossAreThoseOfTheRecordedLogits) {
  const auto model = open_model(random_tiny_model());
  CaptureRequest request = two_runs();
  request.record.logits = true;
  CaptureRequest alone = request;
  add_twins(request, "");
  const std::vector<std::vector<int>> prompts = {kEditedIds, kOther};
  const auto before = CaptureReader::open(capture(*model, alone));
  const auto after = CaptureReader::open(capture(*model, request));
  double largest = 0;
  for (std::size_t r = 0; r < prompts.size(); ++r) {
    const std::string run = "run" + std::to_string(r), twin = run + "_edit0";
    const auto kl = after->read_f64(twin, "compare/kl"),
               loss = after->read_f64(twin, "logits/loss"),
               delta = after->read_f64(twin, "compare/loss_delta");
    const std::int64_t V = before->dims(run, "logits/full")[1];
    for (std::size_t t = 0; t < prompts[r].size(); ++t) {
      const auto row = static_cast<std::int64_t>(t);
      const auto p = log_softmax(before->read_f64(run, "logits/full", {row, 0}, {1, V})),
                 q = log_softmax(after->read_f64(twin, "logits/full", {row, 0}, {1, V}));
      double want = 0;
      for (std::size_t i = 0; i < p.size(); ++i) want += std::exp(p[i]) * (p[i] - q[i]);
      EXPECT_NEAR(kl[t], want, 1e-6 * std::max(1.0, want)) << run << ' ' << t;
      largest = std::max(largest, want);
      if (t + 1 == prompts[r].size()) break;
      const auto next = static_cast<std::size_t>(prompts[r][t + 1]);
      EXPECT_NEAR(loss[t], -q[next], 1e-6 * std::max(1.0, -q[next]));
      EXPECT_NEAR(delta[t], p[next] - q[next], 3e-6 * std::max(1.0, -q[next]));
    }
  }
  EXPECT_GT(largest, 1e-2);
}

TEST(WhatIfBaseline, AFinalNormOfAnotherSizeIsRefused) {
  const auto model = open_model(random_tiny_model());
  CaptureRequest request = two_runs();
  add_twins(request, "baseline.h5");
  request.baseline_final_norms = {std::vector<float>(3), std::vector<float>(3)};
  EXPECT_THROW(capture(*model, request), Error);
}

// The mean is that of the model as it is, over the edited positions of the calibration prompts, at
// each site: the second site's mean does not see the first one's edit.
TEST(WhatIfCalibration, MeansComeFromTheCalibrationInTheUneditedModel) {
  const auto model = open_model(random_tiny_model());
  const std::vector<std::vector<int>> calibration = {{9, 1, 30, 7}, {12, 12, 5}};
  double mid = 0, post = 0, n = 0;
  for (const auto& ids : calibration) {
    ReferenceHooks hooks;
    hooks.residual = [&](Site site, int layer, Rows& x) {
      if (layer != 0 || site == Site::resid_pre) return;
      for (std::size_t t = 1; t < x.size(); ++t) (site == Site::resid_mid ? mid : post) += x[t][2];
    };
    reference_loss(*model, ids, hooks);
    n += static_cast<double>(ids.size()) - 1;
  }
  ReferenceHooks hooks;
  hooks.residual = [&](Site site, int layer, Rows& x) {
    if (layer != 0 || site == Site::resid_pre) return;
    for (std::size_t t = 1; t < x.size(); ++t) x[t][2] = (site == Site::resid_mid ? mid : post) / n;
  };
  const Row want = reference_loss(*model, kEditedIds, hooks);

  CaptureRequest request = request_for(kEditedIds);
  RunInput twin = request.runs[0];
  twin.edit_of = 0;
  twin.what_if = R"({"edit":"residual.set","value":"mean","dims":[2],"tokens":"rest","layers":[0],
                     "sites":["hook_resid_mid","hook_resid_post"]})";
  twin.calibration_sha256 = "of the tokens";
  request.runs.push_back(twin);
  for (const auto& ids : calibration) request.calibration.push_back(prompt(ids));
  const auto reader = CaptureReader::open(capture(*model, request));
  const auto got = reader->read_f64("run0_edit0", "logits/loss");
  for (std::size_t t = 0; t < want.size(); ++t) EXPECT_NEAR(got[t], want[t], 1e-5) << t;
  EXPECT_EQ(reader->runs().size(), 1u);  // the calibration is not recorded
  EXPECT_EQ(reader->text_attribute("run0_edit0", "", "calibration_sha256"), "of the tokens");
  // Without a calibration the twins are their own, which is another number.
  request.calibration.clear();
  const auto own = CaptureReader::open(capture(*model, request));
  EXPECT_GT(std::abs(own->read_f64("run0_edit0", "logits/loss")[4] - want[4]), 1e-4);
}

// Calibrated on its own prompt, an edit sets the means that it sets without a calibration: also in
// an encoder, whose tokens see later ones.
TEST(WhatIfCalibration, AnEncoderIsRunAsOne) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/bert");
  const auto model = open_model(folder);
  const std::vector<int> ids = {5, 9, 1, 30, 7, 12, 2};
  CaptureRequest request = request_for(ids);
  RunInput twin = request.runs[0];
  twin.edit_of = 0;
  twin.what_if = R"({"edit":"residual.set","value":"mean","dims":[3],"tokens":"all",
                     "sites":["blocks.0.hook_resid_post"]})";
  request.runs.push_back(twin);
  const auto stream_of = [&] {
    return CaptureReader::open(capture(*model, request))->read_f32("run0_edit0", "residual/stream");
  };
  const std::vector<float> own = stream_of();
  request.calibration.push_back(prompt(ids));
  const std::vector<float> calibrated = stream_of();
  ASSERT_EQ(calibrated.size(), own.size());
  for (std::size_t i = 0; i < own.size(); ++i) ASSERT_NEAR(calibrated[i], own[i], 1e-5) << i;
}

TEST(WhatIfCalibration, PositionsThatNoCalibrationPromptHasAreRefused) {
  const auto model = open_model(random_tiny_model());
  CaptureRequest request = request_for(kEditedIds);
  RunInput twin = request.runs[0];
  twin.edit_of = 0;
  twin.what_if = R"({"edit":"residual.set","value":"mean","dims":[2],"tokens":[6]})";
  request.runs.push_back(twin);
  request.calibration.push_back(prompt({1, 2, 3}));
  try {
    capture(*model, request);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("calibration prompt"));
  }
}

// As many variants at a time as the budget holds: the same numbers to the bit.
TEST(Evaluate, VariantsInBatchesAreTheSameToTheBit) {
  const auto model = open_model(random_tiny_model());
  EvaluateRequest request;
  request.device = "cpu";
  request.threads = test_threads();
  request.runs = {prompt(kEditedIds), prompt(kOther)};
  for (const char* limit : {"0.2", "0.3", "0.4", "0.5", "0.6"})
    request.variants.push_back(
        parse_what_if(R"({"edit":"residual.clip","limit":)" + std::string(limit) + "}"));
  Progress progress;
  const auto whole = engine().evaluate(*model, request, {std::stop_token(), progress});
  const std::int64_t one =
      state_bytes(static_cast<int>(kEditedIds.size() + kOther.size()), model->spec());
  ASSERT_TRUE(whole);
  for (std::int64_t sets : {2, 3}) {
    request.activation_budget = one * sets;
    const auto parts = engine().evaluate(*model, request, {std::stop_token(), progress});
    ASSERT_TRUE(parts);
    EXPECT_EQ(parts->loss, whole->loss) << sets;
    EXPECT_EQ(parts->kl, whole->kl) << sets;
  }
  request.activation_budget = one;
  EXPECT_THROW(engine().evaluate(*model, request, {std::stop_token(), progress}), Error);
}

}  // namespace
}  // namespace sinkscope::test
