// SPDX-License-Identifier: GPL-3.0-or-later
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "app/cli/run_cli.h"
#include "tests/app/cli_run.h"
#include "tests/app/small_capture.h"
#include "tests/support/shared_files.h"

namespace sinkscope {
namespace {

using test::cli;
using test::CliRun;
using ::testing::HasSubstr;

TEST(RescaleVerb, RefusesWhatIsNotThere) {
  const std::string path = test::small_capture(test::scratch_folder());
  EXPECT_EQ(cli({"rescale", path, "--dims", "7"}).code, kExitUsage);
  EXPECT_EQ(cli({"rescale", path, "--key", "6"}).code, kExitUsage);
  EXPECT_EQ(cli({"rescale", path, "--json", "--csv"}).code, kExitUsage);
  EXPECT_EQ(cli({"rescale", path + "::run9"}).code, kExitCorrupt);
}

#ifdef SINKSCOPE_WITH_TORCH
TEST(RescaleVerb, SaysWhatThePlantedNormsDoWithTheirOutliers) {
  const std::string planted = std::string(SINKSCOPE_SOURCE_DIR) + "/sample_data/planted";
  const std::string folder = test::scratch_folder(), path = folder + "/run.h5";
  ASSERT_EQ(cli({"capture", planted, "--text", "a few bytes", "-o", path}).code, 0);
  const CliRun run = cli({"rescale", path, "--json", "-o", folder + "/e.json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = nlohmann::ordered_json::parse(run.out);
  EXPECT_EQ(json["schema"], "sinkscope.rescale/1");
  EXPECT_EQ(json["points_above_bound"], 0);
  ASSERT_EQ(json["norms"].size(), 9u);
  for (const auto& norm : json["norms"]) {
    if (norm["layer"] != 3 || norm["role"] != "ln2") continue;
    // <s> holds 4,096 in dimension 37 and next to nothing else; ln2 silences it by 0.01.
    EXPECT_EQ(norm["dim"][0], 37);
    EXPECT_GT(norm["r2"][0], .9999);
    EXPECT_LT(norm["alpha"][0], .01);
    // A byte holds 32 in dimension 11 against 61 dimensions of about 1: r² = 1024/1085.
    EXPECT_EQ(norm["dim"][1], 11);
    EXPECT_NEAR(norm["r2"][1], 1024.0 / 1085, .02);
    EXPECT_LT(norm["share_after"][1], norm["r2"][1]);
  }
  EXPECT_TRUE(json["not_computed"].contains("contribution into the next linear layer"));
  const std::string help = cli({"rescale", "--help"}).out;
  for (const auto& [key, value] : json.items()) EXPECT_THAT(help, HasSubstr(key)) << key;
  const CliRun with = cli({"rescale", path, "--model", planted});
  ASSERT_EQ(with.code, 0) << with.err;
  EXPECT_THAT(with.out, HasSubstr("all 108 norm outputs lie below bounds"));
  EXPECT_THAT(cli({"rescale", path, "--csv"}).out, HasSubstr("role,layer,token,dim,r2"));
  // The figures draw these numbers: every dot of a norm lies below the bound's curve.
  const CliRun bound = cli({"figure", "bound", path, "-o", folder + "/bound.csv"});
  ASSERT_EQ(bound.code, 0) << bound.err;
  EXPECT_GT(test::n_lines(test::read_file(folder + "/bound.csv")), 9 * 12);
  const CliRun shares = cli({"figure", "shares", path, "-o", folder + "/shares.csv"});
  ASSERT_EQ(shares.code, 0) << shares.err;
  EXPECT_THAT(test::read_file(folder + "/shares.csv"), HasSubstr("FFN norms"));
}
#endif

}  // namespace
}  // namespace sinkscope
