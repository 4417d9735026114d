// SPDX-License-Identifier: GPL-3.0-or-later
// What `cmake --install` puts together works by itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/app/cli_run.h"
#include "tests/app/small_capture.h"
#include "tests/support/shared_files.h"

namespace sinkscope {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class Install : public ::testing::Test {
 protected:
  void SetUp() override {
    const test::CliRun run = test::shell(
        std::string("cmake --install ") + SINKSCOPE_BINARY_DIR + " --prefix \"$PWD/tree\"",
        folder_);
    ASSERT_EQ(run.code, 0) << run.out << run.err;
  }
  // Runs the installed program from an empty folder.
  test::CliRun installed(const std::string& words) const {
    return test::shell("unset DISPLAY WAYLAND_DISPLAY QT_QPA_PLATFORM; " + folder_ +
                           "/tree/bin/sinkscope " + words,
                       folder_);
  }
  std::string tree(const std::string& path) const { return folder_ + "/tree/" + path; }

  std::string folder_ = test::scratch_folder();
  std::string model_ = std::string(SINKSCOPE_SOURCE_DIR) + "/sample_data/planted";
};

TEST_F(Install, TheProgramRunsWhereItWasPut) {
  EXPECT_THAT(installed("--version").out, HasSubstr("sinkscope"));
  const test::CliRun info = installed("info " + model_);
  EXPECT_EQ(info.code, 0) << info.err;
  EXPECT_THAT(info.out, HasSubstr("layers"));
}

#ifdef SINKSCOPE_WITH_GUI

TEST_F(Install, FiguresComeOutOfTheInstalledModule) {
  const std::string capture = test::small_capture(folder_);
  const test::CliRun run = test::shell(
      "LD_DEBUG=files " + folder_ + "/tree/bin/sinkscope figure " + "key-mass small.h5 -o f.pdf",
      folder_);
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(fs::exists(folder_ + "/f.pdf"));
  EXPECT_THAT(run.err, HasSubstr("calling init: " + tree("lib/sinkscope/libsinkscope_gui.so")));
}

TEST_F(Install, TheDesktopFindsEntryAndIcon) {
  EXPECT_TRUE(fs::exists(tree("share/icons/hicolor/scalable/apps/sinkscope.svg")));
  const std::string entry = test::read_file(tree("share/applications/sinkscope.desktop"));
  EXPECT_THAT(entry, HasSubstr("Icon=sinkscope\n"));
  EXPECT_THAT(entry, HasSubstr("Exec=sinkscope view %f\n"));
  // desktop-file-utils is not everywhere; where it is, it is asked.
  const test::CliRun check =
      test::shell("command -v desktop-file-validate >/dev/null || exit 0; desktop-file-validate " +
                      tree("share/applications/sinkscope.desktop"),
                  folder_);
  EXPECT_EQ(check.code, 0) << check.out;
}

#endif

#ifdef SINKSCOPE_WITH_TORCH

TEST_F(Install, TheInstalledEngineRecords) {
  const test::CliRun run =
      test::shell("LD_DEBUG=files " + folder_ + "/tree/bin/sinkscope capture -q " + model_ +
                      " --text \"a b a b\" -o run.h5",
                  folder_);
  EXPECT_EQ(run.code, 0) << run.err.substr(run.err.size() > 2000 ? run.err.size() - 2000 : 0);
  EXPECT_TRUE(fs::exists(folder_ + "/run.h5"));
  EXPECT_THAT(run.err, HasSubstr("calling init: " + tree("lib/sinkscope/libsinkscope_engine.so")));
}

#endif

}  // namespace
}  // namespace sinkscope
