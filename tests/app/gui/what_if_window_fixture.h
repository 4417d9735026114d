// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <gtest/gtest.h>

#include <QApplication>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QTest>
#include <filesystem>
#include <memory>
#include <string>

#include "app/gui/capture_form.h"
#include "app/gui/main_window.h"
#include "app/gui/what_if_desk.h"
#include "tests/support/shared_files.h"
#include "tests/support/test_application.h"
#include "tests/support/window_hand.h"
#include "views/panels/what_if_panel.h"

namespace sinkscope {

inline const std::string kPlanted = std::string(SINKSCOPE_SOURCE_DIR) + "/sample_data/planted";

// A window of its own, driven as a user would, in a folder of its own.
class WhatIfWindow : public ::testing::Test {
 protected:
  WhatIfWindow() {
    test_application();
    QApplication::setAttribute(Qt::AA_DontUseNativeDialogs);
    QApplication::setOrganizationName(QStringLiteral("sinkscope-test"));
    std::filesystem::current_path(folder_);
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

}  // namespace sinkscope
