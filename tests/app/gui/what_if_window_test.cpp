// SPDX-License-Identifier: GPL-3.0-or-later
// What-ifs in the window: a new user's path from opening a model to the copied command.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QApplication>
#include <QClipboard>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QSignalSpy>
#include <QTabWidget>
#include <QTest>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/gui/capture_form.h"
#include "app/gui/main_window.h"
#include "app/gui/rescaling_desk.h"
#include "app/gui/what_if_desk.h"
#include "capture/checkpoint/arch_file.h"
#include "core/capture_reader.h"
#include "core/h5/dataset.h"
#include "core/h5/file.h"
#include "tests/app/cli_run.h"
#include "tests/support/demo_model.h"
#include "tests/support/event_turns.h"
#include "tests/support/shared_files.h"
#include "tests/support/test_application.h"
#include "tests/support/window_hand.h"
#include "views/figure/figure_dialog.h"
#include "views/panels/rescaling_panel.h"
#include "views/panels/what_if_panel.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

Edit edit(const char* text) { return parse_what_if(text).front(); }

const std::string kPlanted = std::string(SINKSCOPE_SOURCE_DIR) + "/sample_data/planted";

class WhatIfWindow : public ::testing::Test {
 protected:
  WhatIfWindow() {
    test_application();
    QApplication::setAttribute(Qt::AA_DontUseNativeDialogs);
    QApplication::setOrganizationName(QStringLiteral("sinkscope-test"));
    fs::current_path(folder_);
    window_ = std::make_unique<MainWindow>();
    window_->move(0, 0);
    window_->show();
    hand_ = std::make_unique<WindowHand>(*window_);
  }
  ~WhatIfWindow() override { QTest::qWait(10); }

  void open_model(const std::string& path, const std::string& arch_file = "") {
    window_->open(QString::fromStdString(path), QString::fromStdString(arch_file));
    ASSERT_TRUE(QTest::qWaitFor([&] { return window_->session().model() != nullptr; }, 20000));
  }
  // Through the form, as a user would.
  void record(const QString& text, const std::string& file) {
    ASSERT_TRUE(hand_->press(QStringLiteral("Record…")));
    CaptureForm& form = window_->captureForm();
    auto* prompt = form.findChild<QPlainTextEdit*>();
    prompt->selectAll();
    QTest::keyClicks(prompt, text);
    for (QLineEdit* line : form.findChildren<QLineEdit*>())
      if (line->text().endsWith(QStringLiteral(".h5")))
        line->setText(QString::fromStdString(folder_ + "/" + file));
    ASSERT_TRUE(QTest::qWaitFor(
        [&] { return form.plan().has_value() && form.plan()->choice.text == text.toStdString(); },
        10000));
    ASSERT_TRUE(hand_->press(QStringLiteral("Record")));
    ASSERT_TRUE(QTest::qWaitFor(
        [&] { return window_->session().run() != nullptr && window_->panelId() == "overview"; },
        60000))
        << window_->errorText().toStdString();
  }
  void go_to_what_if() {
    ASSERT_TRUE(hand_->press(QStringLiteral("What-if")));
    panel_ = dynamic_cast<WhatIfPanel*>(window_->panel());
    ASSERT_NE(panel_, nullptr);
    desk_ = panel_->findChild<WhatIfDesk*>();
    ASSERT_NE(desk_, nullptr);
  }
  // Presses the button and waits until the result of the present edits is there.
  void run_model() {
    ASSERT_TRUE(QTest::qWaitFor([&] { return desk_->state().obstacle.empty(); }, 5000))
        << desk_->state().obstacle;
    ASSERT_TRUE(hand_->press(QStringLiteral("Run the model")));
    ASSERT_TRUE(QTest::qWaitFor(
        [&] { return desk_->state().is_current && desk_->state().maps != nullptr; }, 60000))
        << desk_->state().failure;
  }
  void keep(const QString& name) { keep_picture(picture_of(*window_), name); }

  std::string folder_ = test::scratch_folder();
  std::unique_ptr<MainWindow> window_;
  std::unique_ptr<WindowHand> hand_;
  WhatIfPanel* panel_ = nullptr;
  WhatIfDesk* desk_ = nullptr;
};

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
