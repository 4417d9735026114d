// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/figure_export.h"

#include <gtest/gtest.h>

#include <QLabel>
#include <QSignalSpy>
#include <QTest>

#include "tests/app/cli_run.h"
#include "tests/app/small_capture.h"
#include "tests/support/shared_files.h"
#include "tests/support/test_application.h"

namespace sinkscope {
namespace {

class FigureExportTest : public ::testing::Test {
 protected:
  FigureExportTest() { test_application(); }

  std::string folder_ = test::scratch_folder();
  std::string capture_ = test::small_capture(folder_);
};

bool says(FigureDialog& dialog, const QString& text) {
  for (const QLabel* label : dialog.findChildren<QLabel*>())
    if (label->text().contains(text)) return true;
  return false;
}

template <class Condition>
bool wait_for(Condition condition) {
  for (int i = 0; i < 500 && !condition(); ++i) QTest::qWait(10);
  return condition();
}

TEST_F(FigureExportTest, FC81_TheWindowsFileIsTheCommandLinesByteForByte) {
  FigureRequest request;
  request.kind = "residual-sorted";
  request.inputs = {capture_ + "::run1"};
  request.title = "Title";
  auto* const at_work = new FigureExport(request, request.inputs, {}, {}, nullptr);
  FigureDialog& dialog = at_work->dialog();
  for (const char* suffix : {"pdf", "svg", "png", "csv"}) {
    const std::string from_window = folder_ + "/window." + suffix;
    QSignalSpy saved(at_work, &FigureExport::saved);
    at_work->save(dialog.request(), QString::fromStdString(from_window));
    ASSERT_TRUE(saved.wait(20000)) << suffix;
    std::string command = figure_command(dialog.request(), folder_ + "/command." + suffix);
    const test::CliRun run = test::shell(command, folder_);
    ASSERT_EQ(run.code, 0) << command << run.err;
    EXPECT_EQ(test::read_file(from_window), test::read_file(folder_ + "/command." + suffix))
        << suffix;
  }
  delete &dialog;
}

TEST_F(FigureExportTest, ThePreviewArrivesWithItsSize) {
  FigureRequest request;
  request.kind = "key-mass";
  request.inputs = {capture_};
  FigureDialog& dialog = (new FigureExport(request, request.inputs, {}, {}, nullptr))->dialog();
  dialog.show();
  EXPECT_TRUE(wait_for([&] { return says(dialog, "85 × "); }));
  // White paper with the blue of the bars on it.
  const QImage picture = picture_of(dialog);
  keep_picture(picture, "figure-dialog-preview");
  int n_blue = 0;
  for (int y = 0; y < picture.height(); ++y)
    for (int x = picture.width() / 2; x < picture.width(); ++x)
      n_blue += (picture.pixel(x, y) & 0xFFFFFF) == 0x0072B2 ? 1 : 0;
  EXPECT_GT(n_blue, 100);
  delete &dialog;
}

TEST_F(FigureExportTest, WhatFailsIsShownInTheDialog) {
  FigureRequest request;
  request.kind = "attention-head";
  request.layer = 77;
  request.inputs = {capture_};
  auto* const at_work = new FigureExport(request, request.inputs, {}, {}, nullptr);
  FigureDialog& dialog = at_work->dialog();
  EXPECT_TRUE(wait_for([&] { return says(dialog, "no such layer"); }));
  at_work->save(request, QString::fromStdString(folder_ + "/f.xyz"));
  EXPECT_TRUE(wait_for([&] { return says(dialog, "pdf, svg, png or csv"); }));
  delete &dialog;
}

}  // namespace
}  // namespace sinkscope
