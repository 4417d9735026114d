// SPDX-License-Identifier: GPL-3.0-or-later
// Where -o may lead, verb by verb: what is there and is no file stays as it is, --force or not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "tests/app/cli_run.h"
#include "tests/app/small_capture.h"
#include "tests/support/h5_reference.h"
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

TEST_F(OutputTest, AnInputIsNeverWrittenOver) {
  const std::string model = folder + "/model";
  fs::copy(kModel, model);
  fs::create_symlink("model/config.json", folder + "/link.h5");
  const std::string text = test::write_file(folder, "text.txt", "a b");
  const auto ask = [&](std::vector<std::string> command, const std::string& output) {
    const CliRun refused = run(std::move(command), output, true);
    EXPECT_EQ(refused.code, 2) << output << ": " << refused.err;
    EXPECT_THAT(refused.err, HasSubstr("is the input itself")) << output;
  };
  const std::string config = test::read_file(model + "/config.json"),
                    capture = test::read_file(path);
  for (const std::string& output :
       {model + "/config.json", model + "/model.safetensors", folder + "/link.h5"}) {
    ask({"capture", model, "--tokens", "1,2,3"}, output);
    ask({"sinks", model}, output);
    ask({"whatif", model, "--edit", R"({"edit":"residual.clip","limit":100})"}, output);
    ask({"probe", model, "--dims", "1"}, output);
    ask({"tokenize", model, "--text", "a"}, output);
    ask({"figure", "norm-gains", model, "--format", "csv"}, output);
  }
  ask({"capture", model + "/model.safetensors", "--tokens", "1"}, model + "/config.json");
  ask({"capture", model, "--text-file", text}, text);
  ask({"capture", model, "--like", path}, path);
  ask({"tokenize", model, "--text-file", text}, text);
  ask({"dump", path + "::run0", "blocks.0.hook_resid_mid"}, path);
  ask({"figure", "attention-mean", path, "--format", "csv"}, path);
  ask({"rescale", path}, path);
  ask({"repair", path}, path);
  EXPECT_EQ(test::read_file(model + "/config.json"), config);
  EXPECT_EQ(test::read_file(path), capture);
  EXPECT_EQ(test::read_file(text), "a b");
  // What lies beside a model and is none of its files may be replaced.
  test::write_file(model, "ids.txt", "old");
  EXPECT_EQ(run({"tokenize", model, "--text", "a", "--ids"}, model + "/ids.txt", true).code, 0);
}

TEST_F(OutputTest, ACopyOfACaptureMissesNothing) {
  const std::string whole = test::read_file(path);
  for (const auto how : {test::Elsewhere::external_link, test::Elsewhere::raw_file,
                         test::Elsewhere::virtual_dataset}) {
    test::write_file(folder, "small.h5", whole);
    test::move_elsewhere(path, "run1/attention/key_mass", how);
    const CliRun refused = run({"repair", path}, folder + "/copy.h5", false);
    EXPECT_EQ(refused.code, 3) << refused.out;
    EXPECT_THAT(refused.err, HasSubstr("run1/attention/key_mass"));
    EXPECT_FALSE(fs::exists(folder + "/copy.h5"));
  }
  test::write_file(folder, "small.h5", whole);
  EXPECT_EQ(run({"repair", path}, folder + "/copy.h5", false).code, 0);
  EXPECT_EQ(test::read_file(folder + "/copy.h5"), whole);
}

TEST_F(OutputTest, ALinkThatLeadsNowhereIsThere) {
  fs::create_symlink("nowhere", folder + "/dangling");
  for (const auto& command : commands()) {
    const CliRun refused = run(command, folder + "/dangling", false);
    EXPECT_EQ(refused.code, 2) << command.front() << ": " << refused.err;
    EXPECT_THAT(refused.err, HasSubstr("exists already")) << command.front();
  }
  EXPECT_TRUE(fs::is_symlink(folder + "/dangling"));
}

TEST_F(OutputTest, ACaptureDoesNotGoDownAPipe) {
  for (const auto& command : commands()) {
    const std::string& verb = command.front();
    if (verb != "capture" && verb != "sinks" && verb != "whatif" && verb != "repair") continue;
    const CliRun refused = run(command, "-", true);
    EXPECT_EQ(refused.code, 2) << verb << ": " << refused.err;
    EXPECT_THAT(refused.err, HasSubstr("standard output")) << verb;
  }
  EXPECT_FALSE(fs::exists("-"));
}

TEST_F(OutputTest, NamesOfUnfinishedFilesAreRefused) {
  for (const auto& command : commands())
    for (const char* name : {"x.part", "x.h5.part.tmp", "x.h5.part.state", "x.h5.part.redo"}) {
      const CliRun refused = run(command, folder + "/" + name, true);
      EXPECT_EQ(refused.code, 2) << command.front() << ": " << refused.err;
      EXPECT_THAT(refused.err, HasSubstr("unfinished file")) << command.front();
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
