// SPDX-License-Identifier: GPL-3.0-or-later
// What-ifs in the window: a new user's path from opening a model to the copied command.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QApplication>
#include <QClipboard>
#include <QTest>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "capture/checkpoint/arch_file.h"
#include "tests/app/cli_run.h"
#include "tests/app/gui/what_if_window_fixture.h"
#include "tests/support/demo_model.h"
#include "tests/support/shared_files.h"
#include "views/figure/figure_dialog.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

TEST_F(WhatIfWindow, ANewUsersPathFromOpeningTheModelToTheCopiedCommand) {
  SINKSCOPE_REQUIRE_DEMO_MODEL(model);
  open_model(model);
  record(QStringLiteral("The quick brown fox jumps over the lazy dog."), "fox.h5");
  go_to_what_if();

  // Clip at 100, see the KL.
  ASSERT_TRUE(hand_->choose(QStringLiteral("Add"), QStringLiteral("Clip the stream")));
  ASSERT_EQ(desk_->state().edits.size(), 1U);
  EXPECT_EQ(edit_sentence(desk_->state().edits[0].edit), "clip the stream at ±100");
  run_model();
  const WhatIfOutcome clipped = desk_->state().result->outcome;
  EXPECT_GT(clipped.kl_mean, 5);
  EXPECT_LE(clipped.outliers.edited.max_abs.back().value, 100);
  EXPECT_GT(clipped.outliers.baseline.max_abs[30].value, 10000);
  EXPECT_THAT(panel_->summaryText().toStdString(), HasSubstr("KL mean"));
  keep(QStringLiteral("what_if_clipped"));

  // Swap a head to softmax1, undo.
  CellRef head;
  head.layer = 15;
  head.head = 5;
  window_->session().select(head);
  ASSERT_TRUE(hand_->choose(QStringLiteral("Add"), QStringLiteral("Attention: softmax1")));
  EXPECT_FALSE(desk_->state().is_current);
  EXPECT_THAT(panel_->summaryText().toStdString(), HasSubstr("Of other edits"));
  run_model();
  EXPECT_EQ(what_if_text({desk_->state().edits[1].edit}),
            R"({"edit":"attention.normalizer","kind":"softmax1","layers":[15],"heads":[5]})");
  EXPECT_NE(desk_->state().result->outcome.kl_mean, clipped.kl_mean);
  ASSERT_TRUE(hand_->press(QStringLiteral("Undo")));
  EXPECT_EQ(desk_->state().edits.size(), 1U);
  run_model();
  EXPECT_EQ(desk_->state().result->outcome.kl_mean, clipped.kl_mean);

  // Before and after as a figure.
  ASSERT_TRUE(
      hand_->choose(QStringLiteral("Take away"), QStringLiteral("Export before and after…")));
  ASSERT_TRUE(
      QTest::qWaitFor([&] { return window_->findChild<FigureDialog*>() != nullptr; }, 5000));
  auto* dialog = window_->findChild<FigureDialog*>();
  QAbstractButton* save = WindowHand::button_in(*dialog, QStringLiteral("Save…"));
  ASSERT_NE(save, nullptr);
  ASSERT_TRUE(QTest::qWaitFor([&] { return save->isEnabled(); }, 10000));
  const std::string figure = folder_ + "/before-after.pdf";
  ASSERT_TRUE(WindowHand::answer_file_dialog(QString::fromStdString(figure),
                                             [&] { WindowHand::click(save); }));
  ASSERT_TRUE(QTest::qWaitFor([&] { return fs::exists(figure); }, 20000));
  EXPECT_THAT(test::read_file(figure), ::testing::StartsWith("%PDF-"));
  dialog->close();

  // The copied command gives the same numbers.
  ASSERT_TRUE(hand_->choose(QStringLiteral("Take away"), QStringLiteral("Copy as command")));
  const std::string command = QApplication::clipboard()->text().toStdString();
  EXPECT_THAT(command, HasSubstr(R"(--edit '{"edit":"residual.clip","limit":100.0}')"));
  const test::CliRun run = test::shell(command + " --json", folder_);
  ASSERT_EQ(run.code, 0) << command << '\n' << run.err;
  EXPECT_EQ(nlohmann::ordered_json::parse(run.out), outcome_json(desk_->state().result->outcome));
}

// A model that only a file describes: recorded, edited, and copied with that file.
TEST_F(WhatIfWindow, AModelUnderADescriptionOfItsOwnIsRunAndCopiedWithIt) {
  const std::string model = folder_ + "/ours";
  fs::create_directory(model);
  for (const char* name : {"model.safetensors", "tokenizer.json", "tokenizer_config.json"})
    fs::copy_file(kPlanted + "/" + name, model + "/" + name);
  test::write_file(model, "config.json", R"({"model_type":"our_transformer"})");
  const std::string arch = test::write_file(folder_, "our arch.json",
                                            arch_to_json(*sinkscope::open_model(kPlanted)).dump());
  open_model(model, arch);
  EXPECT_EQ(window_->session().model()->files->arch_file(), arch);
  record(QStringLiteral("a cat sat"), "ours.h5");
  go_to_what_if();
  ASSERT_TRUE(hand_->choose(QStringLiteral("Add"), QStringLiteral("Clip the stream")));
  run_model();
  ASSERT_TRUE(hand_->choose(QStringLiteral("Take away"), QStringLiteral("Copy as command")));
  const std::string command = QApplication::clipboard()->text().toStdString();
  EXPECT_THAT(command, HasSubstr("--arch '" + arch + "'"));
  const test::CliRun run = test::shell(command + " --json", folder_);
  ASSERT_EQ(run.code, 0) << command << '\n' << run.err;
  EXPECT_EQ(nlohmann::ordered_json::parse(run.out), outcome_json(desk_->state().result->outcome));
}

TEST_F(WhatIfWindow, AnEditThatCannotTakeEffectIsShownAsAnError) {
  open_model(kPlanted);
  record(QStringLiteral("abcabc"), "abc.h5");
  go_to_what_if();
  desk_->apply({{parse_what_if(R"({"edit":"residual.clip","limit":1,"layers":[99]})").front()}});
  ASSERT_TRUE(QTest::qWaitFor([&] { return desk_->state().obstacle.empty(); }, 5000));
  desk_->run();
  ASSERT_TRUE(QTest::qWaitFor([&] { return !desk_->job().isRunning(); }, 20000));
  EXPECT_THAT(panel_->failureText().toStdString(), HasSubstr("99 does not exist"));
  EXPECT_EQ(desk_->state().result, nullptr);
  desk_->apply({});
  EXPECT_EQ(panel_->failureText(), QString()) << "the next change takes it away";
  // Edits from elsewhere, as JSON.
  QApplication::clipboard()->setText(QStringLiteral("{\"edit\":\"residual.clip\",\"limit\":0}"));
  ASSERT_TRUE(hand_->choose(QStringLiteral("Add"), QStringLiteral("From JSON in the clipboard")));
  EXPECT_THAT(panel_->failureText().toStdString(), HasSubstr("limit above 0"));
  QApplication::clipboard()->setText(
      QStringLiteral("[{\"edit\":\"mlp.activation\",\"kind\":\"relu\"}]"));
  ASSERT_TRUE(hand_->choose(QStringLiteral("Add"), QStringLiteral("From JSON in the clipboard")));
  ASSERT_EQ(desk_->state().edits.size(), 1U);
  EXPECT_EQ(edit_sentence(desk_->state().edits[0].edit), "MLP activation becomes relu");
}

TEST_F(WhatIfWindow, WithoutTheModelItSaysWhatIsMissing) {
  const std::string capture = folder_ + "/alone.h5";
  ASSERT_EQ(test::cli({"capture", kPlanted, "--tokens", "0,5,9,3,7", "-o", capture}).code, 0);
  window_->open(QString::fromStdString(capture));
  ASSERT_TRUE(QTest::qWaitFor([&] { return window_->session().run() != nullptr; }, 10000));
  go_to_what_if();
  desk_->apply({{ResidualClip{50, {}, {}, {}}}});
  EXPECT_THAT(panel_->summaryText().toStdString(), HasSubstr("no model: open"));
  EXPECT_FALSE(hand_->button(QStringLiteral("Run the model"))->isEnabled());
  // Its model comes to the run that is looked at.
  open_model(kPlanted);
  EXPECT_EQ(window_->panelId(), "whatif");
  run_model();
  EXPECT_LE(desk_->state().result->outcome.outliers.edited.max_abs.front().value, 50);
}

// The path of a new user again, on an X server.
TEST(WhatIfXvfb, TheNewUsersPathOnADisplay) {
  if (std::getenv("SINKSCOPE_TEST_DISPLAY") != nullptr) GTEST_SKIP() << "is being run by itself";
  SINKSCOPE_REQUIRE_DEMO_MODEL(model);
  const std::string folder = test::scratch_folder();
  if (test::shell("command -v Xvfb", folder).code != 0) {
    if (std::getenv("CI") != nullptr) FAIL() << "Xvfb is needed here";
    GTEST_SKIP() << "Xvfb is not installed";
  }
  const test::CliRun run = test::shell(
      std::string("export HOME=$PWD XDG_CONFIG_HOME=$PWD/config XDG_RUNTIME_DIR=$PWD\n"
                  "Xvfb -displayfd 4 -screen 0 1400x900x24 -nolisten tcp 4>display 2>/dev/null &\n"
                  "server=$!; trap 'kill $server' EXIT\n"
                  "for _ in $(seq 100); do [ -s display ] && break; sleep 0.1; done\n"
                  "export DISPLAY=:$(cat display) QT_QPA_PLATFORM=xcb SINKSCOPE_TEST_DISPLAY=1\n") +
          "timeout 100 \"" + SINKSCOPE_BINARY_DIR +
          "/bin/what_if_window_test\" --gtest_filter='WhatIfWindow.ANewUsers*'",
      folder);
  EXPECT_EQ(run.code, 0) << run.out << run.err;
  EXPECT_THAT(run.out, HasSubstr("[  PASSED  ] 1 test"));
}

}  // namespace
}  // namespace sinkscope
