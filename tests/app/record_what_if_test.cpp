// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/record_what_if.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/capture_reader.h"
#include "core/h5/dataset.h"
#include "core/h5/file.h"
#include "core/what_if/outcome.h"
#include "tests/app/cli_run.h"
#include "tests/support/shared_files.h"

namespace sinkscope {
namespace {

const std::string kPlanted = std::string(SINKSCOPE_SOURCE_DIR) + "/sample_data/planted";
const char* const kEdit = R"({"edit":"residual.clip","limit":10,"layers":"1-2"})";

// Two prompts of 4 and 9 tokens; the second is what is edited.
class RecordWhatIf : public ::testing::Test {
 protected:
  void record(const std::string& level) {
    const std::string prompts = test::write_file(
        folder_, "prompts.jsonl", "{\"tokens\":[9,5,9,3]}\n{\"tokens\":[0,5,9,3,7,2,8,4,6]}\n");
    const auto run = test::cli(
        {"capture", kPlanted, "--prompts", prompts, "--record", level, "-o", recording()});
    ASSERT_EQ(run.code, 0) << run.err;
  }
  std::string recording() const { return folder_ + "/run.h5"; }
  WhatIfPlan plan() const {
    const auto reader = CaptureReader::open(recording());
    return plan_what_if(*model_, reader->input("run1"),
                        reader->read_text("run1", "provenance/command"), parse_what_if(kEdit));
  }
  KnownBaseline recorded_run() const { return {recording(), "run1", {}, {}}; }

  // The new capture; how much was computed for it is in `work_`.
  KnownBaseline make(const std::string& name, const KnownBaseline& known) {
    Progress progress;
    auto made = record_what_if(*model_, plan(), folder_ + "/" + name, known, {{}, progress});
    work_ = progress.total;
    EXPECT_TRUE(made.has_value());
    return made ? *made : KnownBaseline{};
  }
  void write(const std::string& path, float value) const {
    auto file = h5::File::open_for_writing(recording());
    auto data = h5::Dataset::open_for_writing(file.root(), path, path);
    data.write({0}, {1}, ElementType::f32, &value);
    file.close();
  }
  void write_text(const std::string& path, const std::string& text) const {
    auto file = h5::File::open_for_writing(recording());
    h5::Dataset::open_for_writing(file.root(), path, path).write_texts(std::vector{text});
    file.close();
  }
  void expect_same(const std::string& a, const std::string& b) const {
    const auto one = CaptureReader::open(folder_ + "/" + a),
               two = CaptureReader::open(folder_ + "/" + b);
    const CaptureLayout layout = plan().layout;
    for (int run : {0, 1})
      for (const DatasetSpec& spec : datasets_of(layout, run)) {
        const std::string name = run_group_name(layout.runs, run);
        if (spec.type == ElementType::text)
          EXPECT_EQ(one->read_texts(name, spec.path), two->read_texts(name, spec.path))
              << name << ' ' << spec.path;
        else
          EXPECT_EQ(one->read_f64(name, spec.path), two->read_f64(name, spec.path))
              << name << ' ' << spec.path;
      }
    EXPECT_EQ(outcome_json(what_if_outcome(*one, 0, {})),
              outcome_json(what_if_outcome(*two, 0, {})));
  }

  std::string folder_ = test::scratch_folder();
  std::shared_ptr<const ModelFiles> model_ = open_model(kPlanted);
  std::int64_t work_ = 0;
};

TEST_F(RecordWhatIf, AKnownBaselineGivesTheSameFileForHalfTheWork) {
  for (const char* level : {"stream", "maps"}) {
    record(level);
    make("joint.h5", {});
    const std::int64_t both = work_;
    const KnownBaseline made = make("reused.h5", recorded_run());
    expect_same("joint.h5", "reused.h5");
    // The head reads the baseline's final norm once more for the KL; blocks are run for one.
    EXPECT_LT(work_, both * 6 / 10);
    // And the result is as good a baseline for the next one.
    make("again.h5", made);
    expect_same("joint.h5", "again.h5");
    EXPECT_LT(work_, both * 6 / 10);
    std::filesystem::remove(recording());
  }
}

TEST_F(RecordWhatIf, WithoutARecordedFinalNormItIsRunAgainOnceAndKept) {
  record("stats");
  make("joint.h5", {});
  const std::int64_t both = work_;
  const KnownBaseline made = make("first.h5", recorded_run());
  expect_same("joint.h5", "first.h5");
  EXPECT_EQ(made.final_norm.size(), 9U * 64U);
  make("second.h5", made);
  expect_same("joint.h5", "second.h5");
  EXPECT_LT(work_, both * 6 / 10);
}

TEST_F(RecordWhatIf, TheBaselineIsTheRecordingItself) {
  record("stream");
  write("run1/logits/loss", 25);
  make("made.h5", recorded_run());
  const auto reader = CaptureReader::open(folder_ + "/made.h5");
  EXPECT_EQ(reader->read_f32("run0", "logits/loss").front(), 25);
}

TEST_F(RecordWhatIf, WhatAnotherProgramRecordedIsRunAgain) {
  record("stream");
  write("run1/logits/loss", 25);
  write_text("run1/provenance/torch", "1.2.3");
  const KnownBaseline made = make("made.h5", recorded_run());
  const auto reader = CaptureReader::open(folder_ + "/made.h5");
  EXPECT_NE(reader->read_f32("run0", "logits/loss").front(), 25);
  EXPECT_EQ(reader->read_text("run0", "provenance/torch"), load_engine().torch_version());
  // Now there is one by this program.
  EXPECT_EQ(made.path, folder_ + "/made.h5");
  make("again.h5", made);
  expect_same("made.h5", "again.h5");
}

TEST_F(RecordWhatIf, ARecordingThatIsGoneIsRunAgain) {
  record("stream");
  make("joint.h5", {});
  make("made.h5", {folder_ + "/gone.h5", "run1", {}, {}});
  expect_same("joint.h5", "made.h5");
}

TEST_F(RecordWhatIf, CanceledItLeavesNoCapture) {
  record("stream");
  std::stop_source stop;
  stop.request_stop();
  Progress progress;
  EXPECT_FALSE(record_what_if(*model_, plan(), folder_ + "/made.h5", recorded_run(),
                              {stop.get_token(), progress}));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/made.h5"));
}

}  // namespace
}  // namespace sinkscope
