// SPDX-License-Identifier: GPL-3.0-or-later
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/cli/run_cli.h"
#include "core/capture_layout.h"
#include "tests/app/cli_run.h"
#include "tests/app/small_capture.h"
#include "tests/support/shared_files.h"

namespace sinkscope {
namespace {

using test::cli;
using test::CliRun;
using ::testing::HasSubstr;

class SinksTest : public ::testing::Test {
 protected:
  std::string folder = test::scratch_folder();
  std::string path = test::small_capture(folder);
};

TEST_F(SinksTest, TextEndsWithTheNextCommand) {
  const CliRun run = cli({"sinks", path});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("\nnext: sinkscope "));
  EXPECT_THAT(run.err, HasSubstr("run0 of 2 runs"));
}

TEST_F(SinksTest, JsonHoldsTheKeysOfTheContract) {
  const CliRun run = cli({"sinks", path, "--run", "all", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = nlohmann::ordered_json::parse(run.out);
  EXPECT_EQ(json.items().begin().key(), "schema");
  EXPECT_EQ(json["schema"], "sinkscope.sinks/1");
  ASSERT_EQ(json["runs"].size(), 2u);
  const auto& second = json["runs"][1];
  EXPECT_EQ(second["tokens"], 9);
  EXPECT_EQ(second["attention"]["first_token_score"]["with_row0"].size(), 3u);
  EXPECT_EQ(second["attention"]["first_token_score"]["with_row0"][0].size(), 4u);
  for (const char* key : {"sites", "max_abs", "kurtosis", "massive", "sorted_dims",
                          "sorted_dims_without_first", "first_permille_ratio", "sink_dims"})
    EXPECT_TRUE(second["residual"].contains(key)) << key;
  EXPECT_TRUE(json.contains("all"));
  const std::string help = cli({"sinks", "--help"}).out;
  for (const auto& [key, value] : json.items()) EXPECT_THAT(help, HasSubstr(key)) << key;
}

TEST_F(SinksTest, OneRunByItsPath) {
  const CliRun run = cli({"sinks", path + "::run1", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  ASSERT_EQ(json["runs"].size(), 1u);
  EXPECT_EQ(json["runs"][0]["tokens"], 9);
  EXPECT_EQ(run.err, "");
}

TEST_F(SinksTest, CsvIsOneTable) {
  const CliRun run = cli({"sinks", path, "--csv"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out,
              ::testing::StartsWith("run,quantity,layer,head,site,token,dim,value,text\n"));
  EXPECT_GT(test::n_lines(run.out), 50);
}

TEST_F(SinksTest, EpsilonAndPositionsReachTheReport) {
  const CliRun run =
      cli({"sinks", path, "--json", "--epsilon", "0.125", "--at", "rest", "--min-queries", "2"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(nlohmann::json::parse(run.out)["runs"][0]["attention"]["gu"]["epsilon"], 0.125);
}

TEST_F(SinksTest, ARunGoesByItsNameToo) {
  const CliRun run = cli({"sinks", path, "--run", "long", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(nlohmann::json::parse(run.out)["runs"][0]["name"], "run1");
  EXPECT_THAT(cli({"sinks", path, "--run", "longer"}).err, HasSubstr("(run0, run1)"));
}

TEST_F(SinksTest, ANameThatIsNoRunsAloneIsExit3LikeOneThatIsNone) {
  const std::string twice = test::small_capture(test::scratch_folder(), [](CaptureLayout& layout) {
    for (RunInput& run : layout.runs) run.name = "fox";
  });
  const CliRun run = cli({"sinks", twice, "--run", "fox"});
  EXPECT_EQ(run.code, kExitCorrupt);
  EXPECT_THAT(run.err, HasSubstr("2 runs are named 'fox': expected one of run0, run1"));
  EXPECT_EQ(cli({"sinks", twice, "--run", "hen"}).code, kExitCorrupt);
}

TEST_F(SinksTest, AWrongPositionNamesItsFlag) {
  EXPECT_THAT(cli({"sinks", path, "--at", "foo"}).err,
              HasSubstr("--at: positions: expected all, first"));
}

TEST_F(SinksTest, APromptBesideACaptureIsAMistake) {
  EXPECT_EQ(cli({"sinks", path, "--text", "a"}).code, kExitUsage);
  EXPECT_EQ(cli({"sinks", path, "-o", "b.h5"}).code, kExitUsage);
}

TEST_F(SinksTest, ADamagedCaptureIsExit3) {
  const std::string bytes = test::read_file(path);
  const std::string cut = test::write_file(folder, "cut.h5", bytes.substr(0, bytes.size() / 2));
  const CliRun run = cli({"sinks", cut});
  EXPECT_EQ(run.code, kExitCorrupt) << run.err;
  EXPECT_EQ(test::n_lines(run.err), 1) << run.err;
  EXPECT_THAT(run.err, HasSubstr("cut.h5"));
}

TEST_F(SinksTest, LookingAtACaptureWithoutAVerb) {
  const CliRun run = cli({path});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("2, 15 tokens"));
  EXPECT_THAT(run.out, HasSubstr("residual stream, attention maps, attn.hook_z"));
  EXPECT_THAT(run.out, HasSubstr("next: sinkscope sinks "));
}

#ifdef SINKSCOPE_WITH_TORCH

const std::string kPlanted = std::string(SINKSCOPE_SOURCE_DIR) + "/sample_data/planted";

// TMPDIR is where the program puts what nobody asked to keep.
CliRun sinks_of_planted(const std::string& folder, const std::string& more) {
  return test::shell(
      "mkdir tmp; TMPDIR=$PWD/tmp sinkscope sinks '" + kPlanted + "' --threads 1 " + more, folder);
}

TEST_F(SinksTest, AModelIsRunOnTheBuiltInTextAndLeavesNothing) {
  const CliRun run = sinks_of_planted(folder, "--json");
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.err, HasSubstr("built-in"));
  EXPECT_TRUE(std::filesystem::is_empty(folder + "/tmp"));
  const auto json = nlohmann::json::parse(run.out);
  const auto& report = json["runs"][0];
  ASSERT_EQ(report["sink_tokens"].size(), 1u);
  EXPECT_EQ(report["sink_tokens"][0]["token"], 0);
  EXPECT_EQ(report["sink_tokens"][0]["text"], "<s>");
  EXPECT_EQ(report["residual"]["massive"][0]["dim"], 37);
}

// The terminal is closed while a model runs: what nobody asked to keep goes.
TEST_F(SinksTest, AHangUpLeavesNothing) {
  test::write_file(folder, "text.txt", std::string(60000, 'a'));
  const CliRun run = test::shell("mkdir tmp; export TMPDIR=$PWD/tmp\nsinkscope sinks '" + kPlanted +
                                     "' --text-file text.txt --threads 1 & pid=$!\n"
                                     "until [ -e tmp/*/run.h5.part ]; do sleep 0.1; done\n"
                                     "kill -HUP $pid; wait $pid",
                                 folder);
  EXPECT_EQ(run.code, kExitCanceled) << run.err;
  EXPECT_TRUE(std::filesystem::is_empty(folder + "/tmp"));
}

// /proc has no room for anything.
TEST_F(SinksTest, AFullDiskIsToldBeforeTheModelRuns) {
  const CliRun run = cli({"sinks", kPlanted, "--text", "a", "-o", "/proc/self/kept.h5"});
  EXPECT_EQ(run.code, kExitIo) << run.err;
  EXPECT_THAT(run.err, HasSubstr("the disk has 0 B free"));
}

TEST_F(SinksTest, WithAnOutputTheCaptureStays) {
  const CliRun run = sinks_of_planted(folder, "--text 'hello there, you' -o kept.h5");
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(std::filesystem::exists(folder + "/kept.h5"));
  EXPECT_THAT(run.out, HasSubstr("kept.h5"));
}

#endif

}  // namespace
}  // namespace sinkscope
