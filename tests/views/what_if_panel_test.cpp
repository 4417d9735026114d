// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/panels/what_if_panel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QAbstractItemModelTester>
#include <QCheckBox>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QListView>
#include <QPushButton>
#include <QSignalSpy>
#include <QSlider>
#include <QToolButton>

#include "core/draw/colormap.h"
#include "tests/support/test_application.h"
#include "views/heatmap/heatmap.h"
#include "views/panels/compare_panel.h"
#include "views/theme.h"
#include "views/widgets/edit_editor.h"
#include "views/widgets/edit_list_model.h"
#include "views/widgets/outcome_table.h"

namespace sinkscope {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Edit edit(const char* text) { return parse_what_if(text).front(); }

const char* const kClip = R"({"edit":"residual.clip","limit":100})";
const char* const kMask = R"({"edit":"attention.mask_key","keys":[0],"heads":[2]})";

CompareSide side(const char* title, float sink) {
  CompareSide made;
  made.kind = MapKind::attention;
  made.title = title;
  made.map = Grid(3, 3, std::vector<float>{1, 0, 0, sink, 1 - sink, 0, sink, 0.1F, 0.9F - sink})
                 .with_spans(causal_spans(3, 3));
  made.rows = made.cols = {0, 1, 2};
  return made;
}

std::shared_ptr<const WhatIfResult> result() {
  WhatIfResult made;
  made.path = "what-if.h5";
  made.after.run = "run0_edit0";
  made.outcome.what_if = {edit(kClip)};
  made.outcome.loss = {4, 15.5};
  made.outcome.kl_mean = 10.25;
  made.outcome.kl_max = 18.5;
  made.outcome.kl_max_token = 7;
  made.outcome.metrics = {{"residual.max_abs.largest", {22552, 100}}};
  made.outcome.sites = {"blocks.0.hook_resid_pre", "blocks.0.hook_resid_post"};
  made.outcome.outliers.baseline.max_abs = {{{3, 0, 5}, 0}, {{22552, 0, 507}, 0}};
  made.outcome.outliers.edited.max_abs = {{{3, 0, 5}, 0}, {{100, 1, 507}, 0}};
  made.kl = {1, 2, 18.5};
  made.outlier_text = "largest |x|: 22,552 at token 0; now 100 at token 1";
  return std::make_shared<const WhatIfResult>(std::move(made));
}

WhatIfState state() {
  WhatIfState made;
  made.edits = {{edit(kClip), true}, {edit(kMask), false}};
  made.reaches = {"tokens 4 of 4 · layers 3 of 3",
                  "keys 1 of 4 (0) · heads 1 of 4 (2) · layers 3 of 3"};
  made.can_undo = true;
  made.subject = "planted · run0 · 4 tokens";
  made.result = result();
  made.is_current = true;
  made.maps =
      std::make_shared<const CompareSnapshot>(compare({side("before", 0.8F), side("after", 0.2F)}));
  return made;
}

class WhatIfPanelTest : public ::testing::Test {
 protected:
  WhatIfPanelTest() {
    test_application();
    panel_ = std::make_unique<WhatIfPanel>();
    panel_->setPalette(theme_palette(Theme::light));
    panel_->resize(765, 690);
    panel_->show();
    settle();
  }
  QAbstractButton* button(const QString& text) {
    for (QAbstractButton* one : panel_->findChildren<QAbstractButton*>())
      if (one->text() == text) return one;
    return nullptr;
  }
  QListView* list() { return panel_->findChild<QListView*>(); }

  std::unique_ptr<WhatIfPanel> panel_;
};

TEST_F(WhatIfPanelTest, FC55_ShowsTheKlAndSaysThatNothingWasRetrained) {
  panel_->setState(state());
  settle();
  keep_picture(picture_of(*panel_), "what_if_panel");
  ASSERT_EQ(panel_->list().rowCount(), 2);
  EXPECT_EQ(panel_->list().index(0).data().toString(), "clip the stream at ±100");
  EXPECT_EQ(panel_->list().index(1).data(Qt::CheckStateRole).toInt(), Qt::Unchecked);
  const std::string summary = panel_->summaryText().toStdString();
  EXPECT_THAT(summary, HasSubstr("KL mean 10.25, largest 18.5 at token 7"));
  EXPECT_THAT(summary, HasSubstr("loss 4 → 15.5"));
  EXPECT_THAT(summary, HasSubstr("now 100 at token 1"));
  EXPECT_THAT(summary, Not(HasSubstr("Of other edits")));
  bool says_so = false;
  for (const QLabel* label : panel_->findChildren<QLabel*>())
    says_so = says_so || (label->isVisible() && label->text() == "not retrained");
  EXPECT_TRUE(says_so);
}

TEST_F(WhatIfPanelTest, FC58_BeforeAfterAndDifferenceStandInOneRowWithOneRange) {
  panel_->setState(state());
  settle();
  const std::vector<Heatmap*>& maps = panel_->maps().maps();
  ASSERT_EQ(maps.size(), 3U);
  for (const Heatmap* map : maps) EXPECT_TRUE(map->isVisible());
  EXPECT_EQ(maps[0]->y(), maps[2]->y());
  EXPECT_GT(maps[2]->x(), maps[1]->geometry().right());
  EXPECT_EQ(maps[0]->scene()->range, maps[1]->scene()->range);
  const auto color = [&](int map, int row, int col) {
    return color_at(picture_of(*maps[map]), maps[map]->cellRect(row, col).center());
  };
  EXPECT_EQ(color(0, 0, 0), color(1, 0, 0)) << "equal values";
  EXPECT_NE(color(0, 2, 0), color(1, 2, 0)) << "0.8 and 0.2";
  EXPECT_LT(ok_lab(color(2, 2, 0)).b, -0.01) << "less attention after: blue";
}

TEST_F(WhatIfPanelTest, AResultOfOtherEditsSaysSo) {
  WhatIfState other = state();
  other.is_current = false;
  panel_->setState(other);
  EXPECT_THAT(panel_->summaryText().toStdString(),
              HasSubstr(R"(Of other edits ({"edit":"residual.clip","limit":100.0}))"));
}

TEST_F(WhatIfPanelTest, FailuresAndObstaclesAreShown) {
  WhatIfState failed = state();
  failed.failure = "residual.clip: layers: 99 does not exist, expected 0 to 3";
  panel_->setState(failed);
  EXPECT_EQ(panel_->failureText(), "residual.clip: layers: 99 does not exist, expected 0 to 3");
  WhatIfState alone = state();
  alone.result = nullptr;
  alone.maps = nullptr;
  alone.obstacle = "no model: open planted to rerun it";
  panel_->setState(alone);
  EXPECT_EQ(panel_->failureText(), "");
  EXPECT_FALSE(button("Run the model")->isEnabled());
  EXPECT_THAT(panel_->summaryText().toStdString(), HasSubstr("Cannot run: no model"));
  EXPECT_FALSE(panel_->figureRequest().has_value());
}

TEST_F(WhatIfPanelTest, ASliderAsksForAPreviewWhileItMovesAndForTheChangeWhenItIsLetGo) {
  panel_->setState(state());
  list()->setCurrentIndex(panel_->list().index(0));
  auto* slider = qobject_cast<QSlider*>(panel_->editor().widgetOf("limit"));
  ASSERT_NE(slider, nullptr);
  EditList asked, done;
  int n_asked = 0, n_done = 0;
  QObject::connect(panel_.get(), &WhatIfPanel::previewAsked,
                   [&](const EditList& edits, int) { asked = edits, ++n_asked; });
  QObject::connect(panel_.get(), &WhatIfPanel::editsChanged,
                   [&](const EditList& edits) { done = edits, ++n_done; });
  slider->setSliderDown(true);
  slider->setSliderPosition(200);
  slider->setSliderPosition(600);
  EXPECT_EQ(n_asked, 2);
  EXPECT_EQ(n_done, 0);
  slider->setSliderDown(false);
  EXPECT_EQ(n_done, 1);
  EXPECT_EQ(std::get<ResidualClip>(asked[0].edit).limit, 1000);  // 10^(5 · 0.6)
  EXPECT_EQ(asked, done);
  EXPECT_EQ(done[1], state().edits[1]) << "the other edit is as it was";
}

TEST_F(WhatIfPanelTest, SwitchesUndoAndRemovalAreOnlyAskedFor) {
  panel_->setState(state());
  list()->setCurrentIndex(panel_->list().index(1));
  QSignalSpy undo(panel_.get(), &WhatIfPanel::undoAsked);
  EditList edits;
  QObject::connect(panel_.get(), &WhatIfPanel::editsChanged,
                   [&](const EditList& asked) { edits = asked; });
  button("Undo")->click();
  EXPECT_EQ(undo.count(), 1);
  EXPECT_FALSE(button("Redo")->isEnabled());
  const_cast<EditListModel&>(panel_->list())
      .setData(panel_->list().index(1), Qt::Checked, Qt::CheckStateRole);
  ASSERT_EQ(edits.size(), 2U);
  EXPECT_TRUE(edits[1].is_on);
  EXPECT_EQ(panel_->list().index(1).data(Qt::CheckStateRole).toInt(), Qt::Unchecked)
      << "until the new state comes";
  button("Remove")->click();
  ASSERT_EQ(edits.size(), 1U);
  EXPECT_EQ(edits[0].edit, edit(kClip));
}

TEST_F(WhatIfPanelTest, FC57_SaysWhatTheSelectedEditTouches) {
  panel_->setState(state());
  const auto shows = [&](const char* text) {
    for (const QLabel* label : panel_->findChildren<QLabel*>())
      if (label->isVisible() && label->text() == text) return true;
    return false;
  };
  list()->setCurrentIndex(panel_->list().index(1));
  EXPECT_TRUE(shows("keys 1 of 4 (0) · heads 1 of 4 (2) · layers 3 of 3"));
  list()->setCurrentIndex(panel_->list().index(0));
  EXPECT_TRUE(shows("tokens 4 of 4 · layers 3 of 3"));
}

TEST_F(WhatIfPanelTest, WhatIsTypedMustMakeSense) {
  panel_->setState(state());
  list()->setCurrentIndex(panel_->list().index(0));
  QSignalSpy changed(panel_.get(), &WhatIfPanel::editsChanged);
  auto* layers = qobject_cast<QLineEdit*>(panel_->editor().widgetOf("layers"));
  ASSERT_NE(layers, nullptr);
  layers->setText("7-3");
  emit layers->editingFinished();
  EXPECT_EQ(changed.count(), 0);
  EXPECT_THAT(panel_->failureText().toStdString(), HasSubstr("7-3"));
  layers->setText("3-7");
  emit layers->editingFinished();
  EXPECT_EQ(changed.count(), 1);
  EXPECT_EQ(panel_->failureText(), "");
}

TEST_F(WhatIfPanelTest, APreviewIsShownWithItsLines) {
  PreviewSnapshot preview;
  preview.title = "blocks.1 (2nd of 4), head 2: attention";
  preview.text = "mean attention to key 0: 0.8 → 0.2";
  preview.is_touched = true;
  preview.maps = compare({side("before", 0.8F), side("after", 0.2F)});
  preview.line_title = "Key mass of each token";
  preview.line_before = {2.6, 0.3, 0.1};
  preview.line_after = {1.4, 0.9, 0.7};
  WhatIfState with = state();
  with.preview = std::make_shared<const PreviewSnapshot>(preview);
  panel_->setState(with);
  panel_->showTab(1);
  settle();
  keep_picture(picture_of(*panel_), "what_if_preview");
  EXPECT_THAT(panel_->previewText().toStdString(), HasSubstr("0.8 → 0.2"));
  ASSERT_EQ(panel_->previewMaps().maps().size(), 3U);
  EXPECT_TRUE(panel_->previewMaps().maps()[0]->isVisible());
  EXPECT_FALSE(panel_->colorScale().grids.empty());
}

TEST_F(WhatIfPanelTest, TheFigureIsTheRunAndItsTwin) {
  WhatIfState shown = state();
  shown.maps_request = {MapKind::attention, 15, 5};
  auto temporary = *result();
  const std::string made = "gone/what-if-1.h5";  // is never opened
  temporary.path = made;
  shown.result = std::make_shared<const WhatIfResult>(temporary);
  shown.result_command = "sinkscope whatif M -o what-if.h5";
  panel_->setState(shown);
  const auto request = panel_->figureRequest();
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(figure_command(*request, "f.pdf"),
            "sinkscope figure compare " + made + " " + made +
                "::run0_edit0 --layer 15 --head 5 --names before,after -o f.pdf");
  // A copied command names no file that goes with the window.
  ASSERT_EQ(panel_->madeFiles().size(), 1U);
  EXPECT_EQ(panel_->madeFiles()[0].path, made);
  EXPECT_EQ(lasting_command(*request, "f.pdf", panel_->madeFiles()),
            "sinkscope whatif M -o what-if.h5 && sinkscope figure compare what-if.h5 "
            "what-if.h5::run0_edit0 --layer 15 --head 5 --names before,after -o f.pdf");
  // Once it is saved, the command is about the file that stays; dimensions in the panel's order.
  shown.saved = "kept.h5";
  shown.maps_request = {MapKind::residual, 15, 5};
  panel_->setState(shown);
  EXPECT_TRUE(panel_->madeFiles().empty());
  EXPECT_EQ(figure_command(*panel_->figureRequest(), "f.pdf"),
            "sinkscope figure compare kept.h5 kept.h5::run0_edit0 --layer 15 --order natural --of "
            "residual-sorted --names before,after -o f.pdf");
}

TEST(EditListModel, IsAWellBehavedModel) {
  test_application();
  EditListModel model;
  const QAbstractItemModelTester tester(&model,
                                        QAbstractItemModelTester::FailureReportingMode::Fatal);
  model.setEdits({{edit(kClip), true}});
  model.setEdits({{edit(kClip), false}});
  model.setEdits({{edit(kClip), false}, {edit(kMask), true}});
  EXPECT_EQ(model.rowCount(), 2);
  EXPECT_EQ(model.index(0).data(Qt::CheckStateRole).toInt(), Qt::Unchecked);
  model.setEdits({});
  EXPECT_EQ(model.rowCount(), 0);
}

TEST(OutcomeTable, IsAWellBehavedModelAndLeavesOutWhatIsNotThere) {
  test_application();
  OutcomeTable table;
  const QAbstractItemModelTester tester(&table,
                                        QAbstractItemModelTester::FailureReportingMode::Fatal);
  table.setLines(outcome_lines(result()->outcome));
  ASSERT_EQ(table.rowCount(), 5);
  EXPECT_EQ(table.index(0, OutcomeTable::change).data().toString(), "11.5");
  EXPECT_EQ(table.index(2, OutcomeTable::before).data().toString(), "");
  EXPECT_EQ(table.index(2, OutcomeTable::after).data().toString(), "10.25");
  EXPECT_TRUE(table.asText().endsWith("residual.max_abs.largest\t22552\t100\n"));
}

TEST(EditEditorSlider, ItsStepsReachBothEndsAndAreReadable) {
  EditField limit;
  limit.low = 1;
  limit.high = 1e5;
  limit.is_log = true;
  EXPECT_EQ(slider_value(limit, 0), 1);
  EXPECT_EQ(slider_value(limit, kSliderSteps), 1e5);
  EXPECT_EQ(slider_value(limit, slider_step(limit, 100)), 100);
  EditField b;
  b.low = -20;
  b.high = 20;
  EXPECT_EQ(slider_value(b, kSliderSteps / 2), 0);
  EXPECT_NEAR(slider_value(b, slider_step(b, -2.5)), -2.5, 0.02 + 1e-9);  // half a step
  EXPECT_EQ(slider_step(b, 1000), kSliderSteps) << "a typed number may lie beyond";
}

}  // namespace
}  // namespace sinkscope
