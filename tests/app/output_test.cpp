// SPDX-License-Identifier: GPL-3.0-or-later
// Where -o may lead, verb by verb: what is there and is no file stays as it is, --force or not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "tests/app/cli_run.h"
#include "tests/app/small_capture.h"
#include "tests/support/shared_files.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;
using test::cli;
using test::CliRun;
using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kModel = SINKSCOPE_SOURCE_DIR "/sample_data/planted";

class OutputTest : public ::testing::Test {
 protected:
  std::string folder = test::scratch_folder();
  std::string path = test::small_capture(folder);

  // Every verb that makes a file, without the file's name.
  std::vector<std::vector<std::string>> commands() const {
    return {{"capture", kModel, "--tokens", "1,2,3"},
            {"sinks", kModel},
            {"whatif", kModel, "--edit", R"({"edit":"residual.clip","limit":100})"},
            {"probe", kModel, "--dims", "1"},
            {"dump", path, "blocks.0.hook_resid_mid"},
            {"figure", "attention-mean", path, "--format", "csv"},
            {"rescale", path},
            {"repair", path},
            {"tokenize", kModel, "--text", "a"}};
  }
  static CliRun run(std::vector<std::string> command, const std::string& output, bool force) {
    command.insert(command.end(), {"-o", output});
    if (force) command.emplace_back("--force");
    return cli(command);
  }
};

TEST_F(OutputTest, APipeIsNeitherReplacedNorWaitedFor) {
  const std::string pipe = folder + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  for (const auto& command : commands())
    for (const bool force : {false, true}) {
      const CliRun refused = run(command, pipe, force);
      EXPECT_EQ(refused.code, 2) << command.front() << ": " << refused.err;
      EXPECT_THAT(refused.err, HasSubstr("pipe: expected a file, found a pipe")) << command.front();
      EXPECT_TRUE(fs::is_fifo(pipe)) << command.front();
    }
}

TEST_F(OutputTest, AFolderIsRefusedBeforeWorkBegins) {
  fs::create_directory(folder + "/dir");
  for (const auto& command : commands()) {
    const CliRun refused = run(command, folder + "/dir", true);
    EXPECT_EQ(refused.code, 2) << command.front() << ": " << refused.err;
    EXPECT_THAT(refused.err, HasSubstr("dir: expected a file, found a folder")) << command.front();
  }
  EXPECT_TRUE(fs::is_empty(folder + "/dir"));
}

TEST_F(OutputTest, EmptyAndOverlongNamesAreRefusedInASentence) {
  for (const auto& command : commands()) {
    const CliRun empty = run(command, "", true);
    EXPECT_EQ(empty.code, 2) << command.front() << ": " << empty.err;
    EXPECT_THAT(empty.err, HasSubstr("-o: expected a file's name")) << command.front();
    const CliRun overlong = run(command, folder + "/" + std::string(260, 'n'), true);
    EXPECT_EQ(overlong.code, 2) << command.front() << ": " << overlong.err;
    EXPECT_THAT(overlong.err, AllOf(HasSubstr("bytes, found 260"))) << command.front();
  }
}

TEST_F(OutputTest, AFolderThatIsNotThereIsNamed) {
  for (const auto& command : commands()) {
    if (command.front() == "figure") continue;  // makes it
    const CliRun refused = run(command, folder + "/none/a.out", false);
    EXPECT_EQ(refused.code, 5) << command.front() << ": " << refused.err;
    EXPECT_THAT(refused.err, HasSubstr("its folder " + folder + "/none is not there"))
        << command.front();
  }
}

}  // namespace
}  // namespace sinkscope
