// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/figure_dialog.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QCheckBox>
#include <QClipboard>
#include <QComboBox>
#include <QGuiApplication>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPushButton>
#include <QSignalSpy>

#include "core/error.h"
#include "tests/support/test_application.h"

namespace sinkscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

FigureRequest start() {
  FigureRequest request;
  request.kind = "attention-head";
  request.inputs = {"b.h5::run1"};
  request.layer = 3;
  request.labels_tokens = true;
  request.colormap = "Blues";
  return request;
}

class FigureDialogTest : public ::testing::Test {
 protected:
  FigureDialogTest() {
    test_application();
    dialog_ =
        std::make_unique<FigureDialog>(start(), std::vector<std::string>{"a.h5", "b.h5::run1"});
  }

  void set(const char* field, const char* value) {
    if (auto* const line = dialog_->findChild<QLineEdit*>(field)) return line->setText(value);
    auto* const box = dialog_->findChild<QComboBox*>(field);
    ASSERT_NE(box, nullptr) << field;
    box->setCurrentText(value);
  }
  QPushButton* button(const char* name) const { return dialog_->findChild<QPushButton*>(name); }
  bool says(const QString& text) const {
    for (const QLabel* label : dialog_->findChildren<QLabel*>())
      if (label->text().contains(text)) return true;
    return false;
  }

  std::unique_ptr<FigureDialog> dialog_;
};

TEST_F(FigureDialogTest, TheFieldsSayWhatItStartedWith) { EXPECT_EQ(dialog_->request(), start()); }

TEST_F(FigureDialogTest, FC81_WhatIsCopiedNamesNoFileThatGoesWithTheWindow) {
  FigureRequest compared;
  compared.kind = "compare";
  compared.of = "attention-mean";
  compared.inputs = {"gone/w.h5", "gone/w.h5::run0_edit0", "gone/w.h5.other"};
  const MadeFile made{"gone/w.h5", "what-if.h5", "sinkscope whatif M -o what-if.h5"};
  const MadeFile unused{"gone/p.json", "probes.json", "sinkscope probe M -o probes.json"};
  FigureDialog dialog(compared, {}, {made, unused});
  dialog.findChild<QPushButton*>("copy-command")->click();
  EXPECT_EQ(QGuiApplication::clipboard()->text().toStdString(),
            "sinkscope whatif M -o what-if.h5 && sinkscope figure compare what-if.h5 "
            "what-if.h5::run0_edit0 gone/w.h5.other -o figure.pdf");
  dialog.findChild<QPushButton*>("copy-python")->click();
  const std::string script = QGuiApplication::clipboard()->text().toStdString();
  EXPECT_THAT(script, ::testing::StartsWith("# sinkscope whatif M -o what-if.h5\n"));
  EXPECT_THAT(script, ::testing::Not(HasSubstr("gone/w.h5\"")));
  EXPECT_THAT(script, HasSubstr("what-if.h5"));
  EXPECT_EQ(dialog.request().inputs, compared.inputs) << "the window draws the file it has";
}

TEST_F(FigureDialogTest, ModelsKeepTheFilesThatDescribeThem) {
  FigureRequest gains;
  gains.kind = "norm-gains";
  gains.inputs = {"ours"};
  gains.archs = {"our.json"};
  FigureDialog dialog(gains, {"ours", "usual"}, {}, {{"ours", "our.json"}, {"usual", ""}});
  EXPECT_EQ(dialog.request(), gains);
  dialog.findChild<QPushButton*>("copy-command")->click();
  EXPECT_THAT(QGuiApplication::clipboard()->text().toStdString(),
              HasSubstr("norm-gains ours --arch our.json"));
  dialog.findChild<QListWidget*>("inputs")->item(1)->setCheckState(Qt::Checked);
  EXPECT_THAT(dialog.request().archs, ElementsAre("our.json", ""));
}

TEST_F(FigureDialogTest, FieldsBecomeTheRequest) {
  set("width", "text");
  set("range", "0,0.5");
  set("layer", "");
  dialog_->findChild<QCheckBox*>("token-labels")->setChecked(false);
  dialog_->findChild<QListWidget*>("inputs")->item(1)->setCheckState(Qt::Checked);
  const FigureRequest request = dialog_->request();
  EXPECT_EQ(request.width_mm, 170);
  EXPECT_EQ(request.range->hi, 0.5);
  EXPECT_FALSE(request.layer.has_value());
  EXPECT_FALSE(request.labels_tokens);
  EXPECT_THAT(request.inputs, ElementsAre("b.h5::run1", "a.h5")) << "what was drawn comes first";
  dialog_->findChild<QComboBox*>("kind")->setCurrentText("2601.22966/fig1");
  EXPECT_EQ(dialog_->request().preset, "2601.22966/fig1");
  EXPECT_EQ(dialog_->request().kind, "");
}

TEST_F(FigureDialogTest, WhatMakesNoSenseIsSaidAndCannotBeSaved) {
  EXPECT_TRUE(button("save")->isEnabled());
  set("width", "wide");
  EXPECT_FALSE(button("save")->isEnabled());
  EXPECT_FALSE(button("copy-command")->isEnabled());
  EXPECT_TRUE(says("120mm"));
  set("width", "90mm");
  EXPECT_TRUE(button("save")->isEnabled());
  dialog_->findChild<QListWidget*>("inputs")->item(0)->setCheckState(Qt::Unchecked);
  EXPECT_FALSE(button("save")->isEnabled());
}

TEST_F(FigureDialogTest, ARunThatIsDrawnTwiceStandsThereTwice) {
  FigureRequest compare;
  compare.kind = "compare";
  compare.inputs = {"b.h5", "a.h5", "b.h5"};
  compare.layers = {3, 0, 4};
  const FigureDialog dialog(compare, {"a.h5", "b.h5"});
  EXPECT_EQ(dialog.request(), compare);
}

TEST_F(FigureDialogTest, AsksForAPreviewOnceAfterAPause) {
  QSignalSpy wanted(dialog_.get(), &FigureDialog::previewWanted);
  set("layer", "4");
  set("layer", "5");
  ASSERT_TRUE(wanted.wait(2000));
  EXPECT_EQ(wanted.count(), 1);
  EXPECT_EQ(wanted.at(0).at(0).value<FigureRequest>().layer, 5);
}

TEST_F(FigureDialogTest, ShowsTheCurrentPreviewAndDropsAStaleOne) {
  dialog_->resize(980, 640);
  dialog_->show();
  QImage red(100, 100, QImage::Format_RGB32);
  red.fill(Qt::red);
  FigureRequest stale = start();
  stale.layer = 9;
  dialog_->setPreview(stale, red, "1 × 1 mm");
  EXPECT_FALSE(says("1 × 1 mm"));
  dialog_->setPreview(start(), red, "85 × 90 mm");
  EXPECT_TRUE(says("85 × 90 mm"));
  const QImage picture = dialog_->grab().toImage();
  EXPECT_EQ(picture.pixelColor(picture.width() * 2 / 3, picture.height() / 3), QColor(Qt::red));
  keep_picture(picture, "figure-dialog");
  dialog_->setFailure(start(), "no such layer");
  EXPECT_TRUE(says("no such layer"));
}

TEST_F(FigureDialogTest, CopiesTheCommandAndTheScript) {
  button("copy-command")->click();
  EXPECT_EQ(QGuiApplication::clipboard()->text().toStdString(),
            "sinkscope figure attention-head b.h5::run1 --layer 3 --token-labels --colormap Blues "
            "-o figure.pdf");
  button("copy-python")->click();
  EXPECT_THAT(QGuiApplication::clipboard()->text().toStdString(), HasSubstr("import h5py"));
}

TEST_F(FigureDialogTest, SaveHandsOverTheRequest) {
  QSignalSpy wanted(dialog_.get(), &FigureDialog::saveWanted);
  button("save")->click();
  ASSERT_EQ(wanted.count(), 1);
  EXPECT_EQ(wanted.at(0).at(0).value<FigureRequest>(), start());
}

}  // namespace
}  // namespace sinkscope
