// SPDX-License-Identifier: GPL-3.0-or-later
// Runs of the What-if panel: the newest wins, the last result stays, previews need none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QSignalSpy>
#include <QTest>

#include "core/capture_reader.h"
#include "core/h5/dataset.h"
#include "core/h5/file.h"
#include "tests/app/cli_run.h"
#include "tests/app/gui/what_if_window_fixture.h"
#include "tests/support/event_turns.h"

namespace sinkscope {
namespace {

using ::testing::HasSubstr;

Edit edit(const char* text) { return parse_what_if(text).front(); }

TEST_F(WhatIfWindow, TheNewestRequestWins) {
  open_model(kPlanted);
  QString text;
  for (int i = 0; i < 600; ++i) text += QLatin1Char(static_cast<char>('a' + i % 26));
  record(text, "long.h5");
  go_to_what_if();
  ASSERT_TRUE(QTest::qWaitFor([&] { return desk_->state().obstacle.empty(); }, 5000));
  QSignalSpy finished(&desk_->job(), &BackgroundJob::finished);
  for (int limit : {10, 20, 30, 40}) {
    desk_->apply({{ResidualClip{static_cast<double>(limit), {}, {}, {}}}});
    desk_->run();
  }
  ASSERT_TRUE(QTest::qWaitFor([&] { return desk_->state().is_current; }, 60000));
  EXPECT_EQ(finished.count(), 1) << "what was replaced is not delivered";
  EXPECT_EQ(std::get<ResidualClip>(desk_->state().result->outcome.what_if.front()).limit, 40);
}

TEST_F(WhatIfWindow, CancelingLeavesTheLastResult) {
  open_model(kPlanted);
  record(QStringLiteral("abcabcabc"), "abc.h5");
  go_to_what_if();
  desk_->apply({{ResidualClip{50, {}, {}, {}}}});
  run_model();
  const auto result = desk_->state().result;
  desk_->apply({{ResidualClip{25, {}, {}, {}}}});
  QSignalSpy canceled(&desk_->job(), &BackgroundJob::canceled);
  desk_->run();
  desk_->cancel();
  ASSERT_TRUE(QTest::qWaitFor([&] { return canceled.count() == 1; }, 20000));
  EXPECT_EQ(desk_->state().result, result);
  EXPECT_FALSE(desk_->state().is_current);
  EXPECT_FALSE(desk_->state().is_running);
}

// What stands before the edits is the recording that is looked at, and then the last result.
TEST_F(WhatIfWindow, TheModelAsItIsIsNotRunAgain) {
  const std::string capture = folder_ + "/known.h5";
  ASSERT_EQ(test::cli({"capture", kPlanted, "--tokens", "0,5,9,3,7", "-o", capture}).code, 0);
  {
    auto file = h5::File::open_for_writing(capture);
    auto loss = h5::Dataset::open_for_writing(file.root(), "run0/logits/loss", "loss");
    const std::vector<float> marked = {11, 12, 13, 14};  // no model would
    loss.write({0}, {4}, ElementType::f32, marked.data());
    file.close();
  }
  window_->open(QString::fromStdString(capture));
  ASSERT_TRUE(QTest::qWaitFor([&] { return window_->session().run() != nullptr; }, 10000));
  open_model(kPlanted);
  go_to_what_if();
  for (double limit : {50.0, 25.0}) {
    desk_->apply({{ResidualClip{limit, {}, {}, {}}}});
    run_model();
    const WhatIfOutcome& outcome = desk_->state().result->outcome;
    EXPECT_EQ(outcome.loss.baseline, 12.5) << limit;
    EXPECT_LT(outcome.loss.edited, 11);
    EXPECT_LE(outcome.outliers.edited.max_abs.front().value, limit);
  }
}

TEST_F(WhatIfWindow, APreviewFollowsTheSliderWithoutARerun) {
  open_model(kPlanted);
  record(QStringLiteral("abcabcabc"), "abc.h5");
  go_to_what_if();
  desk_->apply({{edit(R"({"edit":"residual.clip","limit":50})")}});
  ASSERT_TRUE(QTest::qWaitFor([&] { return desk_->state().preview != nullptr; }, 5000))
      << desk_->state().preview_failure;
  const auto before = desk_->state().preview;
  EXPECT_EQ(before->place.role, "ln2");
  for (double limit : {40, 30, 20}) desk_->preview({{ResidualClip{limit, {}, {}, {}}}}, 0);
  const NormInput input =
      read_norm_input(*CaptureReader::open(folder_ + "/abc.h5"), "run0", "ln2", 0);
  const auto newest = row_rms(previewed_norm(input, {ResidualClip{20, {}, {}, {}}}));
  EXPECT_TRUE(QTest::qWaitFor([&] { return desk_->state().preview->line_after == newest; }, 5000))
      << "the newest request wins";
  EXPECT_EQ(desk_->state().result, nullptr);
  // What only a rerun can show says so.
  desk_->apply({{edit(R"({"edit":"norm.replace","with":"dyt"})")}});
  ASSERT_TRUE(QTest::qWaitFor([&] { return !desk_->state().preview_failure.empty(); }, 5000));
  EXPECT_THAT(panel_->previewText().toStdString(), HasSubstr("rerun"));
}

TEST_F(WhatIfWindow, TheEventLoopTurnsWhileASliderMovesAndTheModelRuns) {
  open_model(kPlanted);
  QString text;
  for (int i = 0; i < 600; ++i) text += QLatin1Char(static_cast<char>('a' + i % 26));
  record(text, "long.h5");
  go_to_what_if();
  panel_->showTab(1);
  desk_->apply({{edit(R"({"edit":"attention.normalizer","kind":"clipped","gamma":-0.01})")}});
  ASSERT_TRUE(QTest::qWaitFor(
      [&] { return desk_->state().obstacle.empty() && desk_->state().preview != nullptr; }, 10000));
  QSignalSpy finished(&desk_->job(), &BackgroundJob::finished);
  const Turns turns;
  desk_->run();
  int n_shown = 0;
  for (int i = 1; i <= 20; ++i) {
    AttentionNormalizer swap;
    swap.normalizer = {NormalizerKind::clipped, 0, -0.01 * i, 1};
    const auto before = desk_->state().preview;
    desk_->preview({{swap}}, 0);
    n_shown += QTest::qWaitFor([&] { return desk_->state().preview != before; }, 2000) ? 1 : 0;
  }
  EXPECT_EQ(n_shown, 20);
  ASSERT_TRUE(QTest::qWaitFor([&] { return finished.count() == 1; }, 60000));
  // What the window's thread does by itself; how long it waits for a core is not ours.
  EXPECT_LT(turns.longest_work(), 50);
}

TEST_F(WhatIfWindow, ATwinHasNoPreview) {
  open_model(kPlanted);
  const std::string edited = folder_ + "/edited.h5";
  ASSERT_EQ(test::cli({"whatif", kPlanted, "--tokens", "0,5,9,3,7", "--edit",
                       R"({"edit":"residual.clip","limit":50})", "-o", edited})
                .code,
            0);
  window_->open(QString::fromStdString(edited));
  ASSERT_TRUE(QTest::qWaitFor([&] { return window_->session().run() != nullptr; }, 10000));
  go_to_what_if();
  desk_->apply({{edit(R"({"edit":"residual.clip","limit":20})")}});
  ASSERT_TRUE(QTest::qWaitFor([&] { return desk_->state().preview != nullptr; }, 10000));
  window_->session().selectRun(edited, "run0_edit0");
  EXPECT_EQ(desk_->state().preview, nullptr);
  EXPECT_THAT(desk_->state().preview_failure, HasSubstr("a twin under edits"));
  // And the run itself has it again, without any other change.
  window_->session().selectRun(edited, "run0");
  EXPECT_TRUE(QTest::qWaitFor([&] { return desk_->state().preview != nullptr; }, 10000));
}

}  // namespace
}  // namespace sinkscope
