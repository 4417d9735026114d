// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/output_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "core/error.h"
#include "tests/support/shared_files.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// The refusal's message, "" when there is none.
std::string refusal(
    const std::string& path, ErrorKind kind = ErrorKind::invalid_argument,
    const std::function<void(const std::string&)>& check = [](const std::string& p) {
      require_output_path(p, kCaptureSuffix);
    }) {
  try {
    check(path);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  return "";
}

TEST(OutputPath, OnlyAFileOrNothingMayBeThere) {
  const std::string folder = test::scratch_folder(), file = folder + "/a.h5";
  EXPECT_EQ(refusal(file), "");
  std::ofstream(file) << "x";
  EXPECT_EQ(refusal(file), "");
  fs::create_symlink("a.h5", folder + "/link.h5");
  EXPECT_EQ(refusal(folder + "/link.h5"), "");
  ASSERT_EQ(mkfifo((folder + "/pipe").c_str(), 0600), 0);
  EXPECT_THAT(refusal(folder + "/pipe"), HasSubstr("pipe: expected a file, found a pipe"));
  fs::create_symlink("pipe", folder + "/to_pipe");
  EXPECT_THAT(refusal(folder + "/to_pipe"), HasSubstr("found a pipe"));
  EXPECT_THAT(refusal("/dev/null"), HasSubstr("/dev/null: expected a file, found a device"));
  EXPECT_THAT(refusal(folder), HasSubstr("found a folder"));
  ASSERT_EQ(mkfifo((folder + "/b.h5.part").c_str(), 0600), 0);
  EXPECT_THAT(refusal(folder + "/b.h5"), HasSubstr("b.h5.part: expected a file, found a pipe"));
  fs::create_symlink("loop", folder + "/loop");
  EXPECT_THAT(refusal(folder + "/loop", ErrorKind::io), HasSubstr("loop: cannot be looked at"));
}

TEST(OutputPath, NamesOfUnfinishedFilesAreOurs) {
  const std::string folder = test::scratch_folder();
  for (const char* name :
       {"a.h5.part", ".part", "a.h5.part.tmp", "a.h5.part.state", "a.h5.part.state.before",
        "a.h5.part.state.tmp", "a.h5.part.redo", "a.h5.part.redo.tmp"})
    EXPECT_THAT(refusal(folder + "/" + name), HasSubstr("unfinished file")) << name;
  for (const char* name : {"a.tmp", "state.before", "a.redo", "apart", "a.part.h5"})
    EXPECT_EQ(refusal(folder + "/" + name), "") << name;
}

TEST(OutputPath, AnInputIsNotWrittenOverUnderWhateverName) {
  const std::string folder = test::scratch_folder();
  const std::string input = folder + "/in.h5", other = folder + "/other.h5";
  std::ofstream(input) << "x";
  std::ofstream(other) << "y";
  fs::create_symlink("in.h5", folder + "/link.h5");
  fs::create_hard_link(input, folder + "/hard.h5");
  fs::create_symlink("in.h5", folder + "/out.h5.part");
  const auto is_refused = [&](const std::string& output) {
    return !refusal(output, ErrorKind::invalid_argument, [&](const std::string& p) {
              require_not_input(p, {folder + "/not_there", input});
            }).empty();
  };
  for (const char* name : {"in.h5", "link.h5", "hard.h5", "./in.h5", "out.h5"})
    EXPECT_TRUE(is_refused(folder + "/" + name)) << name;
  EXPECT_FALSE(is_refused(other));
  EXPECT_FALSE(is_refused(folder + "/new.h5"));
}

TEST(OutputPath, NamesAreNeitherEmptyNorTooLong) {
  const std::string folder = test::scratch_folder();
  EXPECT_THAT(refusal(""), HasSubstr("-o: expected a file's name"));
  const std::string suffix = kCaptureSuffix;
  EXPECT_EQ(refusal(folder + "/" + std::string(255 - suffix.size(), 'n')), "");
  EXPECT_THAT(refusal(folder + "/" + std::string(256 - suffix.size(), 'n')),
              HasSubstr("at most 237 bytes, found 238"));
}

TEST(OutputPath, AFolderThatIsNotThereIsNamed) {
  const std::string folder = test::scratch_folder();
  const auto check = [](const std::string& p) { require_folder_of(p); };
  EXPECT_EQ(refusal(folder + "/a", ErrorKind::io, check), "");
  EXPECT_EQ(refusal("a", ErrorKind::io, check), "");
  EXPECT_THAT(refusal(folder + "/none/a", ErrorKind::io, check),
              HasSubstr("its folder " + folder + "/none is not there"));
}

}  // namespace
}  // namespace sinkscope
