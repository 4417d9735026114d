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
  return test::shell("for t in Xvfb xdotool xauth xclip import; do command -v $t || exit 1; done",
                     folder)
             .code == 0;
}

// A capture of SmolLM2 recorded here, where its file and the engine are; else a small one.
std::string capture_in(const std::string& folder) {
#ifdef SINKSCOPE_WITH_TORCH
  const char* model = std::getenv("SINKSCOPE_DEMO_MODEL");
  if (model != nullptr && std::filesystem::exists(model)) {
    const test::CliRun run = test::shell(
        std::string("sinkscope capture -q '") + model + "' --record maps -o smol.h5", folder);
    EXPECT_EQ(run.code, 0) << run.err;
    return folder + "/smol.h5";
  }
#endif
  return test::small_capture(folder);
}

// Opens a capture, goes from the overview to a head, changes the range mode, zooms, exports.
TEST(WindowXvfb, FromTheOverviewToAHeadAndAFigure) {
  const std::string folder = test::scratch_folder();
  if (!has_tools(folder)) {
    if (std::getenv("CI") != nullptr) FAIL() << "Xvfb, xdotool, xclip, imagemagick are needed here";
    GTEST_SKIP() << "Xvfb, xdotool, xclip or imagemagick is not installed";
  }
  const std::string capture = capture_in(folder);
  const std::string script = std::string(SINKSCOPE_SOURCE_DIR) + "/tests/app/drive_window";
  const test::CliRun run = test::shell("unset QT_QPA_PLATFORM; \"" + script + "\" \"" +
                                           SINKSCOPE_BINARY_DIR + "/bin/sinkscope\" \"" + capture +
                                           "\"" + (capture.ends_with("smol.h5") ? "" : " 4"),
                                       folder);
  EXPECT_EQ(run.code, 0) << run.out << run.err;
  for (const char* step :
       {"the head is shown", "the range has changed", "the map is zoomed",
        "the export dialog is open", "the command is copied", "the figure is saved"})
    EXPECT_NE(run.out.find(step), std::string::npos) << step << " is missing in:\n" << run.out;
  // The command that the window copied draws the same file, byte for byte.
  const std::string command = test::read_file(folder + "/command.txt");
  EXPECT_EQ(command.rfind("sinkscope figure attention-head ", 0), 0U) << command;
  for (const char* word : {"--layer ", "--head ", "--range ", "--view "})
    EXPECT_NE(command.find(word), std::string::npos) << word << " is missing in: " << command;
  const test::CliRun drawn = test::shell(
      "command=$(cat command.txt); eval \"${command% -o figure.pdf} -o command.pdf\"", folder);
  EXPECT_EQ(drawn.code, 0) << command << drawn.err;
  const std::string from_window = test::read_file(folder + "/window.pdf");
  EXPECT_GT(from_window.size(), 1000U);
  EXPECT_EQ(from_window, test::read_file(folder + "/command.pdf")) << command;
}

}  // namespace
}  // namespace sinkscope
