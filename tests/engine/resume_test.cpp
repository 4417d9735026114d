// SPDX-License-Identifier: GPL-3.0-or-later
// A recording that ended badly after any of its layers goes on to the same file, to the bit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/capture_reader.h"
#include "core/error.h"
#include "tests/engine/captured.h"
#include "tests/support/shared_files.h"

namespace sinkscope::test {
namespace {

using Existing = CaptureWriter::Existing;
using Dims = std::vector<std::int64_t>;
using ::testing::HasSubstr;

// Hands everything on until its n-th layer, which meets a full disk.
class BreakingWriter : public CaptureWriter {
 public:
  BreakingWriter(CaptureWriter& real, int layers) : real_(real), left_(layers) {}
  const CaptureLayout& layout() const override { return real_.layout(); }
  const RecordingState* resume_point() const override { return real_.resume_point(); }
  void keep_streams(int layers, int run, const std::vector<StreamBytes>& streams) override {
    real_.keep_streams(layers, run, streams);
  }
  void write(int run, const std::string& path, const Dims& start, const Dims& count,
             const float* values) override {
    real_.write(run, path, start, count, values);
  }
  void write(int run, const std::string& path, const Dims& start, const Dims& count,
             const double* values) override {
    real_.write(run, path, start, count, values);
  }
  void write(int run, const std::string& path, const Dims& start, const Dims& count,
             const std::int32_t* values) override {
    real_.write(run, path, start, count, values);
  }
  void write_pattern(int run, int layer, int head, int n_heads, int row, int n_rows, int key,
                     int key_end, const float* values) override {
    real_.write_pattern(run, layer, head, n_heads, row, n_rows, key, key_end, values);
  }
  void layer_done(int layers_done, int runs_done) override {
    if (left_-- == 0) throw Error(ErrorKind::io, "disk full");
    real_.layer_done(layers_done, runs_done);
  }
  void finish() override { real_.finish(); }

 private:
  CaptureWriter& real_;
  int left_;
};

// Breaks off before the (layers + 1)-th flush, as a kill would after the state was kept.
void break_off(const ModelFiles& model, const CaptureRequest& request, const std::string& path,
               int layers) {
  const auto writer = CaptureWriter::create(path, plan_capture(model, request), Existing::resume);
  BreakingWriter breaking(*writer, layers);
  Progress progress;
  EXPECT_THROW(engine().capture(model, request, breaking, {std::stop_token(), progress}), Error);
}

// Breaks off at every layer in turn, going on from the last break, then finishes.
std::string resumed_capture(const ModelFiles& model, const CaptureRequest& request, int breaks) {
  const std::string path = scratch_folder() + "/run.h5";
  for (int i = 0; i < breaks; ++i) break_off(model, request, path, 1);
  const auto writer = CaptureWriter::create(path, plan_capture(model, request), Existing::resume);
  Progress progress;
  EXPECT_TRUE(engine().capture(model, request, *writer, {std::stop_token(), progress}));
  EXPECT_GE(progress.done, progress.total);
  writer->finish();
  return path;
}

std::vector<int> ids(int n, int step) {
  std::vector<int> out;
  for (int i = 0; i < n; ++i) out.push_back((i * step + 11) % 157);
  return out;
}

CaptureRequest everything(int n_tokens) {
  CaptureRequest request = request_for(ids(n_tokens, 37));
  request.record.maps = request.record.all = request.record.logits = true;
  return request;
}

TEST(Resume, AfterEveryLayerGivesTheSameFile) {
  for (const char* oracle : {"oracles/llama", "oracles/qwen3", "oracles/inkling2"}) {
    SINKSCOPE_REQUIRE_SHARED(folder, oracle);
    const auto model = open_model(folder);
    const CaptureRequest request = everything(41);
    // One layer more each time, the head at last.
    EXPECT_EQ(first_difference(capture(*model, request),
                               resumed_capture(*model, request, model->spec().n_layers)),
              "")
        << oracle;
  }
}

TEST(Resume, InBfloat16TheStateIsExactToo) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/llama");
  const auto model = open_model(folder);
  CaptureRequest request = everything(29);
  request.dtype = RunDtype::bfloat16;
  EXPECT_EQ(first_difference(capture(*model, request), resumed_capture(*model, request, 2)), "");
}

TEST(Resume, GroupsThatAreWholeAreNotRunAgain) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/llama");
  const auto model = open_model(folder);
  CaptureRequest request = everything(23);
  for (int n : {40, 9}) request.runs.push_back(request_for(ids(n, 31)).runs.front());
  request.activation_budget = 1;  // each prompt is a group of its own
  const int layers = model->spec().n_layers;
  EXPECT_EQ(first_difference(capture(*model, request),
                             resumed_capture(*model, request, 2 * (layers + 1) + 1)),
            "");
}

// The state decides which runs go on together, whatever the budget now says.
TEST(Resume, AnotherActivationBudgetRunsEveryPromptAllTheSame) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/llama");
  const auto model = open_model(folder);
  CaptureRequest request = everything(23);
  for (int n : {40, 9, 15}) request.runs.push_back(request_for(ids(n, 31)).runs.front());
  const int layers = model->spec().n_layers;
  const std::string path = scratch_folder() + "/run.h5";
  CaptureRequest apart = request;
  apart.activation_budget = 1;
  break_off(*model, apart, path, 2 * (layers + 1) + 1);  // in the third of four groups
  const auto writer = CaptureWriter::create(path, plan_capture(*model, request), Existing::resume);
  Progress progress;
  EXPECT_TRUE(engine().capture(*model, request, *writer, {std::stop_token(), progress}));
  EXPECT_EQ(progress.done, progress.total);
  writer->finish();
  EXPECT_EQ(first_difference(capture(*model, request), path), "");
}

TEST(Resume, TwoBreaksAtOneLayerLoseNothing) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/llama");
  const auto model = open_model(folder);
  const CaptureRequest request = everything(27);
  const std::string path = scratch_folder() + "/run.h5";
  break_off(*model, request, path, 1);
  for (int i = 0; i < 3; ++i) break_off(*model, request, path, 0);
  const auto writer = CaptureWriter::create(path, plan_capture(*model, request), Existing::resume);
  Progress progress;
  EXPECT_TRUE(engine().capture(*model, request, *writer, {std::stop_token(), progress}));
  writer->finish();
  EXPECT_EQ(first_difference(capture(*model, request), path), "");
}

TEST(Resume, TwinsGoOnBesideTheirBaseline) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/llama");
  const auto model = open_model(folder);
  CaptureRequest request = everything(31);
  RunInput twin = request.runs[0];
  twin.edit_of = 0;
  twin.what_if = R"([{"edit":"residual.clip","limit":0.5},)"
                 R"({"edit":"norm.probe","mode":"mean","dims":[3,7]}])";
  request.runs.push_back(twin);
  EXPECT_EQ(first_difference(capture(*model, request), resumed_capture(*model, request, 1)), "");
}

TEST(Resume, AnotherRequestOrADamagedStateIsRefused) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/llama");
  const auto model = open_model(folder);
  const CaptureRequest request = everything(19);
  const std::string path = scratch_folder() + "/run.h5";
  break_off(*model, request, path, 1);
  const auto refusal = [&](const CaptureRequest& now) -> std::string {
    try {
      CaptureWriter::create(path, plan_capture(*model, now), Existing::resume);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  CaptureRequest other = request;
  other.runs[0].token_ids[3] = 5;
  EXPECT_THAT(refusal(other), HasSubstr("tokens was"));
  CaptureRequest threads = request;
  threads.threads += 1;
  EXPECT_THAT(refusal(threads), HasSubstr("threads was"));
  remove_states(path + ".part");
  EXPECT_THAT(refusal(request), HasSubstr("no whole state"));
}

}  // namespace
}  // namespace sinkscope::test
