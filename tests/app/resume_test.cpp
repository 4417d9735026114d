// SPDX-License-Identifier: GPL-3.0-or-later
// Recordings that end badly, from the command line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/app/cli_run.h"
#include "tests/support/shared_files.h"

namespace sinkscope {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kModel = SINKSCOPE_SOURCE_DIR "/sample_data/planted";

// 600 tokens: maps of about 4 MB a layer.
std::string capture(const std::string& flags, int threads = 1) {
  return "sinkscope capture " + kModel + " --tokens $(seq -s, 1 200),$(seq -s, 1 200)," +
         "$(seq -s, 1 200) --record maps --progress none --threads " + std::to_string(threads) +
         " " + flags;
}

// A disk on which the file may not grow beyond 12 MB.
test::CliRun on_a_full_disk(const std::string& folder) {
  return test::shell("ulimit -f 12000; " + capture("-o run.h5"), folder);
}

TEST(FieldCases, FC63_ARecordingOnAFullDiskResumesToTheSameFile) {
  const std::string folder = test::scratch_folder();
  const test::CliRun full = on_a_full_disk(folder);
  EXPECT_EQ(full.code, 5) << full.err;
  EXPECT_THAT(full.err, AllOf(HasSubstr("File too large"), HasSubstr("--resume")));

  const test::CliRun found = test::shell("sinkscope repair run.h5 --json", folder);
  const auto report = nlohmann::json::parse(found.out);
  EXPECT_EQ(report["complete"], false);
  const int whole = report["runs"][0]["whole_layers"];
  EXPECT_GE(whole, 1);
  EXPECT_LT(whole, 4);
  EXPECT_EQ(report["resumable_after"], whole);

  EXPECT_EQ(test::shell(capture("-o run.h5"), folder).code, 2);
  const test::CliRun resumed = test::shell(capture("-o run.h5 --resume"), folder);
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  const test::CliRun undisturbed = test::shell(capture("-o whole.h5"), folder);
  ASSERT_EQ(undisturbed.code, 0) << undisturbed.err;
  const auto said = [](const std::string& text) { return text.substr(0, text.find(", in ")); };
  EXPECT_EQ(said(resumed.out), said(undisturbed.out));
  EXPECT_EQ(test::shell("h5diff run.h5 whole.h5", folder).code, 0);
  EXPECT_EQ(test::shell("ls", folder).out, "run.h5\nwhole.h5\n");
}

TEST(Resume, AnotherThreadCountIsRefusedByName) {
  const std::string folder = test::scratch_folder();
  ASSERT_EQ(on_a_full_disk(folder).code, 5);
  const test::CliRun other = test::shell(capture("-o run.h5 --resume", 2), folder);
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.err, HasSubstr("threads was 1, is 2"));
}

TEST(Resume, WithNothingThereItStartsAndAWholeFileIsLeftAlone) {
  const std::string folder = test::scratch_folder();
  const std::string command =
      "sinkscope capture " + kModel + " --tokens 1,2,3,4,5 --threads 1 -o run.h5 --resume";
  ASSERT_EQ(test::shell(command, folder).code, 0);
  const test::CliRun again = test::shell(command, folder);
  EXPECT_EQ(again.code, 0);
  EXPECT_THAT(again.err, HasSubstr("nothing to resume"));
}

TEST(Repair, CopiesWhatIsWholeAndTakesTheRestAway) {
  const std::string folder = test::scratch_folder();
  ASSERT_EQ(on_a_full_disk(folder).code, 5);
  const test::CliRun copied = test::shell("sinkscope repair run.h5 -o kept.h5", folder);
  EXPECT_EQ(copied.code, 0) << copied.err;
  EXPECT_THAT(copied.out, HasSubstr("layers are whole"));
  EXPECT_EQ(test::shell("sinkscope sinks kept.h5", folder).code, 0);
  EXPECT_EQ(test::shell("sinkscope repair run.h5 --discard", folder).code, 0);
  EXPECT_EQ(test::shell("ls", folder).out, "kept.h5\n");
  EXPECT_EQ(test::shell("sinkscope repair kept.h5 --discard", folder).code, 0);
  EXPECT_EQ(test::shell("sinkscope repair run.h5", folder).code, 3);
}

TEST(Repair, ChecksEveryArrayOfTheRuns) {
  const std::string folder = test::scratch_folder();
  ASSERT_EQ(
      test::shell("sinkscope capture " + kModel + " --tokens 1,2,3,4,5 -o run.h5", folder).code, 0);
  const test::CliRun all = test::shell("sinkscope repair run.h5 --check all", folder);
  EXPECT_EQ(all.code, 0) << all.err;
  EXPECT_THAT(all.out, HasSubstr("every array can be read"));
  const test::CliRun json = test::shell("sinkscope repair run.h5 --check first --json", folder);
  EXPECT_EQ(nlohmann::json::parse(json.out)["unreadable"], nlohmann::json::array());
  EXPECT_EQ(test::shell("sinkscope repair run.h5 --check some", folder).code, 2);
}

}  // namespace
}  // namespace sinkscope
