// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <gtest/gtest.h>

#include <QApplication>
#include <QTest>
#include <memory>
#include <string>

#include "app/gui/main_window.h"
#include "tests/app/small_capture.h"
#include "tests/support/shared_files.h"
#include "tests/support/test_application.h"

namespace sinkscope {

// A window of its own for every test, and a small capture to open in it.
class MainWindowTest : public ::testing::Test {
 protected:
  MainWindowTest() {
    test_application();
    QApplication::setOrganizationName(QStringLiteral("sinkscope-test"));
    window_ = std::make_unique<MainWindow>();
    window_->show();
  }
  Session& session() { return window_->session(); }
  void open_capture(const std::string& run = "") {
    window_->open(QString::fromStdString(path_ + run));
    ASSERT_TRUE(QTest::qWaitFor(
        [&] { return session().overview().snapshot && session().attention().snapshot; }, 10000));
  }

  std::string folder_ = test::scratch_folder();
  std::string path_ = test::small_capture(folder_);
  std::unique_ptr<MainWindow> window_;
};

}  // namespace sinkscope
