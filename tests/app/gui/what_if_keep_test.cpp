// SPDX-License-Identifier: GPL-3.0-or-later
// What the window makes of a what-if: captures, figures, absorbed models, tables of probes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QApplication>
#include <QClipboard>
#include <QTabWidget>
#include <QTest>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/gui/rescaling_desk.h"
#include "core/capture_reader.h"
#include "tests/app/cli_run.h"
#include "tests/app/gui/what_if_window_fixture.h"
#include "views/panels/rescaling_panel.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

TEST_F(WhatIfWindow, AResultCanBeKeptAsACapture) {
  open_model(kPlanted);
  record(QStringLiteral("abcabcabc"), "abc.h5");
  go_to_what_if();
  desk_->apply({{ResidualClip{50, {}, {}, {}}}});
  run_model();
  const std::string path = folder_ + "/kept.h5";
  ASSERT_TRUE(WindowHand::answer_file_dialog(QString::fromStdString(path), [&] {
    hand_->choose(QStringLiteral("Take away"), QStringLiteral("Save the result as a capture…"));
  }));
  ASSERT_TRUE(QTest::qWaitFor([&] { return !desk_->state().note.empty(); }, 10000));
  EXPECT_EQ(desk_->state().saved, path);
  EXPECT_FALSE(fs::exists(path + ".copy.tmp"));
  const auto reader = CaptureReader::open(path);
  EXPECT_TRUE(reader->complete());
  EXPECT_EQ(reader->edits("run0"), std::vector<std::string>{"run0_edit0"});
}

TEST_F(WhatIfWindow, TheCopiedFigureOfAnUnsavedResultMakesItAgain) {
  open_model(kPlanted);
  record(QStringLiteral("abcabcabc"), "abc.h5");
  go_to_what_if();
  desk_->apply({{ResidualClip{50, {}, {}, {}}}});
  run_model();
  desk_->apply({{ResidualClip{25, {}, {}, {}}}});  // not run: the result is of the others
  const auto request = panel_->figureRequest();
  ASSERT_TRUE(request.has_value());
  ASSERT_EQ(test::shell(figure_command(*request, "now.pdf"), folder_).code, 0);
  ASSERT_TRUE(hand_->choose(QStringLiteral("Copy"), QStringLiteral("As command")));
  const std::string command = QApplication::clipboard()->text().toStdString();
  EXPECT_THAT(command, HasSubstr(R"("limit":50)"));
  EXPECT_THAT(command, ::testing::Not(HasSubstr(request->inputs.front())));
  const test::CliRun run = test::shell(command, folder_);
  ASSERT_EQ(run.code, 0) << command << run.err;
  EXPECT_TRUE(test::read_file(folder_ + "/figure.pdf") == test::read_file(folder_ + "/now.pdf"));
}

TEST_F(WhatIfWindow, AbsorbingWritesAModelThatComputesTheSame) {
  open_model(kPlanted);
  record(QStringLiteral("abcabcabc"), "abc.h5");
  go_to_what_if();
  ASSERT_TRUE(QTest::qWaitFor([&] { return desk_->state().obstacle.empty(); }, 5000));
  const std::string folder = folder_ + "/absorbed";
  desk_->absorb("11", "auto", folder);
  ASSERT_TRUE(QTest::qWaitFor([&] { return !desk_->state().is_absorbing; }, 30000));
  EXPECT_THAT(desk_->state().note, HasSubstr("dimensions 11 by"));
  EXPECT_THAT(desk_->state().note, HasSubstr("the same function"));
  EXPECT_TRUE(fs::exists(folder + "/config.json"));
  EXPECT_EQ(test::cli({"info", folder}).code, 0);
  desk_->absorb("11", "auto", folder + "/");
  ASSERT_TRUE(QTest::qWaitFor([&] { return !desk_->state().is_absorbing; }, 30000));
  EXPECT_THAT(panel_->failureText().toStdString(), HasSubstr("absorbed: exists already"));
  desk_->absorb("all", "auto", folder + "-all");
  ASSERT_TRUE(QTest::qWaitFor([&] { return !desk_->state().is_absorbing; }, 30000));
  EXPECT_THAT(panel_->failureText().toStdString(), HasSubstr("found all of them"));
}

TEST_F(WhatIfWindow, ProbesRunFromTheButtonAndAreTheVerbs) {
  open_model(kPlanted);
  record(QStringLiteral("abcabcabcabc"), "abc.h5");
  ASSERT_TRUE(hand_->press(QStringLiteral("Rescaling")));
  auto* panel = dynamic_cast<RescalingPanel*>(window_->panel());
  ASSERT_NE(panel, nullptr);
  auto* desk = panel->findChild<RescalingDesk*>();
  ASSERT_TRUE(QTest::qWaitFor([&] { return desk->state().snapshot != nullptr; }, 10000));
  EXPECT_THAT(panel->headText().toStdString(), HasSubstr("lie below their bounds"));
  EXPECT_THAT(panel->headText().toStdString(), HasSubstr("Not computed: ask for it with"));
  EXPECT_THAT(panel->roleText().toStdString(), HasSubstr("have not been run"));
  desk->setEvidence("11,3", 1);
  ASSERT_TRUE(QTest::qWaitFor(
      [&] {
        return desk->state().snapshot->request.dims == std::vector<int>{3, 11};
      },
      10000))
      << desk->state().failure;
  EXPECT_EQ(desk->state().snapshot->request.key, 1);
  desk->setEvidence("9999", 0);
  ASSERT_TRUE(QTest::qWaitFor([&] { return !desk->state().failure.empty(); }, 10000));
  EXPECT_THAT(panel->headText().toStdString(), HasSubstr("9999 does not exist"));
  desk->setEvidence("auto", 0);
  ASSERT_TRUE(QTest::qWaitFor([&] { return desk->state().failure.empty(); }, 10000));
  ASSERT_TRUE(hand_->press(QStringLiteral("With the model's weights")));
  ASSERT_TRUE(QTest::qWaitFor(
      [&] { return !desk->job().isRunning() && !desk->state().snapshot->contribution.empty(); },
      10000));
  panel->findChild<QTabWidget*>()->setCurrentIndex(1);
  ASSERT_TRUE(hand_->press(QStringLiteral("Run the causal probes")));
  ASSERT_TRUE(QTest::qWaitFor([&] { return desk->state().probes != nullptr; }, 30000))
      << desk->state().probes_failure;
  EXPECT_EQ(panel->bars().size(), 8U);
  EXPECT_THAT(panel->roleText().toStdString(), HasSubstr("Probes: "));
  std::string ids;
  for (int id : window_->session().run()->input.token_ids)
    ids += (ids.empty() ? "" : ",") + std::to_string(id);
  const test::CliRun verb = test::cli({"probe", kPlanted, "--tokens", ids, "--json"});
  ASSERT_EQ(verb.code, 0) << verb.err;
  EXPECT_EQ(nlohmann::ordered_json::parse(verb.out), probe_json(desk->state().probes->table));
  // The bars are a figure of the same table.
  const auto figure = panel->figureRequest();
  ASSERT_TRUE(figure.has_value());
  test::CliRun drawn = test::shell(figure_command(*figure, "probes.svg"), folder_);
  EXPECT_EQ(drawn.code, 0) << drawn.err;
  // What is copied makes the table again: the window's goes with it.
  const std::string command = lasting_command(*figure, "again.svg", panel->madeFiles());
  EXPECT_THAT(command, ::testing::StartsWith("sinkscope probe "));
  EXPECT_THAT(command, ::testing::Not(HasSubstr(figure->inputs.front())));
  drawn = test::shell(command, folder_);
  EXPECT_EQ(drawn.code, 0) << command << drawn.err;
  EXPECT_TRUE(test::read_file(folder_ + "/again.svg") == test::read_file(folder_ + "/probes.svg"));
  // Another run is another question.
  const std::string other = folder_ + "/other.h5";
  ASSERT_EQ(test::cli({"capture", kPlanted, "--tokens", "0,5,9", "-o", other}).code, 0);
  window_->open(QString::fromStdString(other));
  ASSERT_TRUE(QTest::qWaitFor([&] { return window_->session().run()->path == other; }, 10000));
  EXPECT_EQ(desk->state().probes, nullptr);
}

}  // namespace
}  // namespace sinkscope
