// SPDX-License-Identifier: GPL-3.0-or-later
// Drives the real program on a display of its own.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/app/cli_run.h"
#include "tests/app/small_capture.h"
#include "tests/support/shared_files.h"

namespace sinkscope {
namespace {

bool has_tools(const std::string& folder) {
  return test::shell("for t in Xvfb xdotool xauth import; do command -v $t || exit 1; done", folder)
             .code == 0;
}

// Opens a capture, goes from the overview to a head, changes the range mode, exports.
TEST(WindowXvfb, FromTheOverviewToAHeadAndAFigure) {
  const std::string folder = test::scratch_folder();
  if (!has_tools(folder)) {
    if (std::getenv("CI") != nullptr) FAIL() << "Xvfb, xdotool and imagemagick are needed here";
    GTEST_SKIP() << "Xvfb, xdotool or imagemagick is not installed";
  }
  const std::string capture = test::small_capture(folder);
  const std::string script = std::string(SINKSCOPE_SOURCE_DIR) + "/tests/app/drive_window";
  const test::CliRun run =
      test::shell("unset QT_QPA_PLATFORM; \"" + script + "\" \"" + SINKSCOPE_BINARY_DIR +
                      "/bin/sinkscope\" \"" + capture + "\"",
                  folder);
  EXPECT_EQ(run.code, 0) << run.out << run.err;
  EXPECT_NE(run.out.find("the head is shown"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("the range has changed"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("the export dialog is open"), std::string::npos) << run.out;
}

}  // namespace
}  // namespace sinkscope
