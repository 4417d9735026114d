// SPDX-License-Identifier: GPL-3.0-or-later
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QDragEnterEvent>
#include <QLineEdit>
#include <QMenu>
#include <QMimeData>
#include <QSignalSpy>
#include <QTest>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <set>

#include "app/gui/figure_export.h"
#include "app/gui/figure_of_panel.h"
#include "app/gui/navigation_column.h"
#include "app/gui/panel_table.h"
#include "app/gui/reading_column.h"
#include "app/gui/trial_reading.h"
#include "capture/checkpoint/arch_file.h"
#include "capture/checkpoint/model_files.h"
#include "capture/engine.h"
#include "core/help_texts.h"
#include "tests/app/cli_run.h"
#include "tests/app/gui/main_window_fixture.h"
#include "views/heatmap/color_bar.h"
#include "views/heatmap/heatmap.h"
#include "views/panels/attention_panel.h"
#include "views/panels/overview_panel.h"
#include "views/widgets/absorb_dialog.h"
#include "views/widgets/findings_list.h"
#include "views/widgets/head_squares.h"
#include "views/widgets/help_button.h"
#include "views/widgets/token_strip.h"

namespace sinkscope {
namespace {

using ::testing::HasSubstr;

TEST_F(MainWindowTest, ACaptureOpensOnItsOverviewWithoutTheEngine) {
  open_capture();
  EXPECT_EQ(window_->panelId(), "overview");
  EXPECT_EQ(session().runs().size(), 2U);
  EXPECT_EQ(window_->navigation().tokens().count(), test::kTokens);
  EXPECT_EQ(window_->navigation().heads().scores().size(), std::size_t{test::kHeads});
  EXPECT_EQ(window_->reading().findings().count(), 3);
  EXPECT_EQ(window_->errorText(), "");
  EXPECT_THAT(window_->statusText().toStdString(), HasSubstr("6 tokens"));
  EXPECT_FALSE(engine_is_loaded());
}

TEST_F(MainWindowTest, AClickOnACellOfTheOverviewGoesToThatHead) {
  open_capture();
  auto* overview = dynamic_cast<OverviewPanel*>(window_->panel());
  ASSERT_NE(overview, nullptr);
  // Row 3 is head 3, column 2 layer 2: unequal, so that a transposed map would go elsewhere.
  emit overview->heatmap().cellPicked(3, 2);
  EXPECT_EQ(window_->panelId(), "attention");
  EXPECT_EQ(session().selection().cell.layer, 2);
  EXPECT_EQ(session().selection().cell.head, 3);
  ASSERT_TRUE(QTest::qWaitFor(
      [&] {
        const auto map = session().attention().snapshot;
        return map != nullptr && map->request.heads == std::vector<int>{3};
      },
      10000));
  // Recorded: 1000·layer + 100·head + 10·row + key.
  EXPECT_EQ(session().attention().snapshot->map.at(4, 1), 2341);
}

TEST_F(MainWindowTest, KeysChangeLayerHeadRangeAndCopyValues) {
  open_capture();
  QTest::keyClick(window_.get(), Qt::Key_Right);
  QTest::keyClick(window_.get(), Qt::Key_Down);
  QTest::keyClick(window_.get(), Qt::Key_Down);
  EXPECT_EQ(session().selection().cell.layer, 1);
  EXPECT_EQ(session().selection().cell.head, 2);
  for (int i = 0; i < 9; ++i) QTest::keyClick(window_.get(), Qt::Key_Right);
  EXPECT_EQ(session().selection().cell.layer, test::kLayers - 1) << "not beyond the last";

  const RangeRequest before = window_->panel()->colorScale().request;
  window_->reading().stepRange(1);
  EXPECT_FALSE(window_->panel()->colorScale().request == before);
  window_->reading().stepRange(-1);

  const QString values = window_->panel()->valuesAsText();
  EXPECT_EQ(values.count(QLatin1Char('\n')), 1 + test::kHeads);
  EXPECT_TRUE(values.startsWith(QStringLiteral("head\tL0\tL1\tL2\n")));
}

TEST_F(MainWindowTest, ARunCanBeNamedAndAnotherChosen) {
  open_capture("::run1");
  EXPECT_EQ(session().selection().run, "run1");
  EXPECT_EQ(window_->navigation().tokens().count(), test::kTokens + 3);
  CellRef far;
  far.token = test::kTokens + 2;
  session().select(far);
  session().selectRun(path_, "run0");
  EXPECT_EQ(session().selection().cell.token, -1) << "that position is not in the shorter run";
}

TEST_F(MainWindowTest, ThePictureOfAnotherRunIsTakenAwayAtOnce) {
  open_capture();
  CellRef cell;
  cell.layer = 1;
  session().select(cell);
  EXPECT_NE(session().attention().snapshot, nullptr) << "the same run's stays until the next is in";
  session().selectRun(path_, "run1");
  EXPECT_EQ(session().attention().snapshot, nullptr);
  EXPECT_EQ(session().overview().snapshot, nullptr);
  ASSERT_TRUE(QTest::qWaitFor(
      [&] { return session().overview().snapshot && session().attention().snapshot; }, 10000));
  EXPECT_EQ(session().attention().snapshot->request.run, "run1");
}

TEST_F(MainWindowTest, AResultThatIsNoLongerWantedIsDropped) {
  open_capture();
  for (int i = 0; i < 20; ++i) {
    CellRef cell;
    cell.layer = i % test::kLayers;
    cell.head = 1 + i % 3;
    session().select(cell);
  }
  ASSERT_TRUE(QTest::qWaitFor(
      [&] {
        const auto map = session().attention().snapshot;
        return map != nullptr && map->request.layers.front() == session().selection().cell.layer &&
               map->request.heads.front() == session().selection().cell.head;
      },
      10000));
  QTest::qWait(30);
  EXPECT_EQ(session().attention().snapshot->request.layers.front(), 19 % test::kLayers);
}

TEST_F(MainWindowTest, FailuresStandInTheBarAndNotInABox) {
  window_->open(QString::fromStdString(folder_ + "/nothing.h5"));
  ASSERT_TRUE(QTest::qWaitFor([&] { return !window_->errorText().isEmpty(); }, 10000));
  EXPECT_THAT(window_->errorText().toStdString(), HasSubstr("nothing.h5"));
  EXPECT_EQ(QApplication::activeModalWidget(), nullptr);
  open_capture();
  EXPECT_EQ(window_->errorText(), "") << "the next opening takes it away";
}

// A stranger's capture is read by another process first: when that one goes down, this one says so.
TEST_F(MainWindowTest, ACaptureThatKillsItsReaderIsNotOpened) {
  const QString killed = QString::fromStdString(folder_ + "/killed");
  std::ofstream(killed.toStdString()) << "#!/bin/sh\nkill -SEGV $$\n";
  std::filesystem::permissions(killed.toStdString(), std::filesystem::perms::owner_all);
  session().setTrial([&](const std::string& path) { read_in_another_process(killed, path); });
  window_->open(QString::fromStdString(path_));
  ASSERT_TRUE(QTest::qWaitFor([&] { return !window_->errorText().isEmpty(); }, 10000));
  EXPECT_THAT(window_->errorText().toStdString(), HasSubstr("small.h5: the HDF5 library crashed"));
  EXPECT_TRUE(session().runs().empty());
}

TEST_F(MainWindowTest, ACaptureThatAnotherProcessReadsIsOpened) {
  std::atomic<int> trials = 0;
  session().setTrial([&](const std::string& path) {
    ++trials;
    read_in_another_process(QString::fromStdString(test::program_path()), path);
  });
  open_capture();
  EXPECT_EQ(trials, 1);
  EXPECT_EQ(session().runs().size(), 2U);
}

TEST_F(MainWindowTest, WhatIsExportedIsWhatIsSeen) {
  open_capture();
  window_->showPanel("attention");
  auto* attention = dynamic_cast<AttentionPanel*>(window_->panel());
  ASSERT_NE(attention, nullptr);
  EXPECT_EQ(attention->zoomedTo(), std::nullopt);
  attention->heatmap().setView({1.2, 0, 4.8, 3});
  EXPECT_EQ(attention->zoomedTo(), (CellRect{1, 0, 5, 3}));
  const auto part =
      figure_of_panel("attention", session(), {RangeRequest{}, false, attention->zoomedTo()});
  EXPECT_THAT(figure_command(*part, "f.pdf"), HasSubstr("--view 1:5,0:3"));

  AttentionChoice grid;
  grid.is_grid = true;
  emit attention->choiceChanged(grid);
  const auto all = figure_of_panel("attention", session(), {});
  EXPECT_EQ(all->kind, "attention-grid");

  ViewOptions options = session().options();
  options.all_heads = false;
  options.attention_source = AttentionSource::window;
  options.averaged_residual = false;
  options.order = DimOrder::given;
  options.given_order = {3, 1};
  options.score = ScoreKind::with_row0;
  session().setOptions(options);
  EXPECT_THAT(figure_command(*figure_of_panel("attention", session(), {}), "f.pdf"),
              HasSubstr("--source window"));
  const std::string residual = figure_command(*figure_of_panel("residual", session(), {}), "f.pdf");
  EXPECT_THAT(residual, HasSubstr("--dim-list 3,1"));
  EXPECT_THAT(residual, HasSubstr("--signed"));
  EXPECT_THAT(figure_command(*figure_of_panel("overview", session(), {}), "f.pdf"),
              HasSubstr("--score with-row0"));
}

TEST_F(MainWindowTest, WhatIsDroppedOpensAndIsAmongTheRecentFiles) {
  QMimeData mime;
  mime.setUrls({QUrl::fromLocalFile(QString::fromStdString(path_))});
  QDragEnterEvent enter({10, 10}, Qt::CopyAction, &mime, Qt::LeftButton, Qt::NoModifier);
  QApplication::sendEvent(window_.get(), &enter);
  EXPECT_TRUE(enter.isAccepted());
  QDropEvent drop(QPointF(10, 10), Qt::CopyAction, &mime, Qt::LeftButton, Qt::NoModifier);
  QApplication::sendEvent(window_.get(), &drop);
  ASSERT_TRUE(QTest::qWaitFor([&] { return session().run() != nullptr; }, 10000));
  EXPECT_EQ(session().run()->path, path_);
  QMenu* recent = nullptr;
  for (QMenu* menu : window_->findChildren<QMenu*>())
    if (menu->title() == QStringLiteral("Recent")) recent = menu;
  ASSERT_NE(recent, nullptr);
  emit recent->aboutToShow();
  ASSERT_FALSE(recent->actions().isEmpty());
  EXPECT_EQ(recent->actions().front()->text().toStdString(), path_) << "the last one first";
}

TEST_F(MainWindowTest, FindingLeadsToATokenADimensionOrAHead) {
  open_capture();
  QTest::keyClick(window_.get(), Qt::Key_F, Qt::ControlModifier);
  auto* find = window_->navigation().findChild<QLineEdit*>();
  const auto look_for = [&](const char* text) {
    find->setText(QString::fromUtf8(text));
    QTest::keyClick(find, Qt::Key_Return);
    return session().selection().cell;
  };
  const CellRef head = look_for("L2H3");
  EXPECT_EQ(head.layer, 2);
  EXPECT_EQ(head.head, 3);
  EXPECT_EQ(look_for("5").dim, 5);
  const std::string label = session().run()->input.token_text[4];
  EXPECT_EQ(
      session().run()->input.token_text[static_cast<std::size_t>(look_for(label.c_str()).token)],
      label);
}

TEST_F(MainWindowTest, WhatIsSeenIsCopiedAsImageCommandAndPython) {
  open_capture();
  session().select({2, 3});
  window_->showPanel("attention");
  const auto copy = [&](const char* what) {
    for (QAction* action : window_->actions())
      if (action->text() == QString::fromUtf8(what)) action->trigger();
  };
  copy("Image");
  EXPECT_EQ(QApplication::clipboard()->image().size(), window_->panel()->grab().toImage().size());
  copy("As command");
  EXPECT_THAT(QApplication::clipboard()->text().toStdString(),
              HasSubstr("sinkscope figure attention-head " + path_));
  copy("As Python");
  EXPECT_THAT(QApplication::clipboard()->text().toStdString(), HasSubstr("import h5py"));
}

TEST_F(MainWindowTest, AHeadIsAveragedOverTheLayers) {
  open_capture();
  session().select({1, 3});
  window_->showPanel("attention");
  auto* attention = dynamic_cast<AttentionPanel*>(window_->panel());
  ASSERT_NE(attention, nullptr);
  auto* what = attention->findChild<QComboBox*>();
  what->setCurrentText(QStringLiteral("Mean of the head over all layers"));
  EXPECT_EQ(what->currentText(), QStringLiteral("Mean of the head over all layers"));
  ASSERT_TRUE(QTest::qWaitFor(
      [&] {
        const auto map = session().attention().snapshot;
        return map != nullptr && map->request.combine == Combine::mean;
      },
      10000));
  EXPECT_TRUE(session().attention().snapshot->request.layers.empty()) << "all of them";
  EXPECT_EQ(session().attention().snapshot->request.heads, std::vector<int>{3});
  const auto request = figure_of_panel("attention", session(), {});
  EXPECT_THAT(figure_command(*request, "f.pdf"), HasSubstr("figure attention-mean"));
  EXPECT_THAT(figure_command(*request, "f.pdf"), HasSubstr("--head 3"));
  what->setCurrentText(QStringLiteral("Largest over the layer's heads"));
  EXPECT_EQ(session().options().one_head, false);
}

TEST_F(MainWindowTest, EveryTermHasItsQuestionMark) {
  open_capture();
  for (const PanelEntry& entry : panel_table()) window_->showPanel(entry.id);
  std::set<std::string> terms;
  const auto collect = [&](const QWidget& widget) {
    for (const HelpButton* button : widget.findChildren<HelpButton*>())
      terms.insert(button->term().toStdString());
  };
  collect(*window_);
  collect(AbsorbDialog(QStringLiteral("absorbed")));
  for (const HelpText& help : help_texts())
    EXPECT_TRUE(terms.contains(std::string(help.term))) << help.term;
}

TEST_F(MainWindowTest, TheColorBarChoosesWhatAPixelShows) {
  open_capture();
  window_->showPanel("attention");
  auto* attention = dynamic_cast<AttentionPanel*>(window_->panel());
  ASSERT_NE(attention, nullptr);
  emit window_->reading().colorBar().reductionRequested(Reduction::mean);
  EXPECT_EQ(attention->heatmap().reduction(), Reduction::mean);
  EXPECT_EQ(attention->heatmap().scene()->pyramid.reduction(), Reduction::mean) << "a small map";
}

TEST_F(MainWindowTest, APanelIsCopiedAsTheCommandThatDrawsIt) {
  open_capture();
  session().select({2, 3});
  const auto request = figure_of_panel("attention", session(), {RangeRequest{}});
  ASSERT_TRUE(request.has_value());
  const std::string command = figure_command(*request, "figure.pdf");
  EXPECT_THAT(command, HasSubstr("figure attention-head " + path_));
  EXPECT_THAT(command, HasSubstr("--layer 2"));
  EXPECT_THAT(command, HasSubstr("--head 3"));
}

// A model that only a file describes: its figure is drawn and copied with that file.
TEST_F(MainWindowTest, AFigureOfADescribedModelCarriesItsDescription) {
  const std::string planted = std::string(SINKSCOPE_SOURCE_DIR) + "/sample_data/planted",
                    model = folder_ + "/ours";
  std::filesystem::create_directory(model);
  std::filesystem::copy_file(planted + "/model.safetensors", model + "/model.safetensors");
  test::write_file(model, "config.json", R"({"model_type":"our_transformer"})");
  const std::string arch =
      test::write_file(folder_, "our arch.json", arch_to_json(*open_model(planted)).dump());
  window_->open(QString::fromStdString(model), QString::fromStdString(arch));
  ASSERT_TRUE(QTest::qWaitFor([&] { return session().norms().snapshot != nullptr; }, 20000));
  window_->showPanel("norms");
  const auto trigger = [this](const QString& text) {
    for (QAction* action : window_->findChildren<QAction*>())
      if (action->text() == text) action->trigger();
  };
  trigger(QStringLiteral("As command"));
  const std::string command = QApplication::clipboard()->text().toStdString();
  EXPECT_THAT(command, HasSubstr("figure norm-gains " + model + " --arch '" + arch + "'"));
  const test::CliRun run = test::shell(command, folder_);
  ASSERT_EQ(run.code, 0) << command << run.err;

  trigger(QStringLiteral("Export figure"));
  auto* const dialog = window_->findChild<FigureDialog*>();
  ASSERT_NE(dialog, nullptr);
  auto* const exporting = dialog->findChild<FigureExport*>();
  ASSERT_NE(exporting, nullptr);
  QSignalSpy saved(exporting, &FigureExport::saved);
  exporting->save(dialog->request(), QString::fromStdString(folder_ + "/window.pdf"));
  ASSERT_TRUE(saved.wait(20000));
  EXPECT_EQ(test::read_file(folder_ + "/window.pdf"), test::read_file(folder_ + "/figure.pdf"));
  delete dialog;
}

}  // namespace
}  // namespace sinkscope
