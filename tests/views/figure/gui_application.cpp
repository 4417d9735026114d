// SPDX-License-Identifier: GPL-3.0-or-later
// Fonts and painters need a QGuiApplication: one for all tests of this binary, without a display.
#include <gtest/gtest.h>

#include <QGuiApplication>
#include <memory>

namespace sinkscope {
namespace {

class GuiApplication : public ::testing::Environment {
 public:
  void SetUp() override {
    qputenv("QT_QPA_PLATFORM", "offscreen");
    static int argc = 1;
    static char name[] = "figure_test";
    static char* argv[] = {name, nullptr};
    application_ = std::make_unique<QGuiApplication>(argc, argv);
  }
  void TearDown() override { application_.reset(); }

 private:
  std::unique_ptr<QGuiApplication> application_;
};

[[maybe_unused]] const auto* const kEnvironment =
    ::testing::AddGlobalTestEnvironment(new GuiApplication);

}  // namespace
}  // namespace sinkscope
