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

// What rescale wrote draws the figure that the capture draws, also of chosen dimensions.
TEST(RescaleVerb, ItsFileDrawsTheSameFigures) {
  const std::string planted = std::string(SINKSCOPE_SOURCE_DIR) + "/sample_data/planted";
  const std::string folder = test::scratch_folder(), path = folder + "/run.h5";
  ASSERT_EQ(cli({"capture", planted, "--text", "a few bytes", "-o", path}).code, 0);
  ASSERT_EQ(cli({"rescale", path, "-o", folder + "/own.json"}).code, 0);
  ASSERT_EQ(cli({"rescale", path, "--dims", "11", "-o", folder + "/11.json"}).code, 0);
  int n = 0;
  const auto drawn = [&](const std::string& kind, const std::string& input,
                         const std::vector<std::string>& more = {}) {
    const std::string csv = folder + "/" + std::to_string(n++) + ".csv";
    std::vector<std::string> words = {"figure", kind, input, "--names", "planted", "-o", csv};
    words.insert(words.end(), more.begin(), more.end());
    const CliRun run = cli(words);
    EXPECT_EQ(run.code, 0) << run.err;
    return test::read_file(csv);
  };
  for (const char* kind : {"bound", "shares"}) {
    const std::string own = drawn(kind, path), chosen = drawn(kind, path, {"--dim-list", "11"});
    EXPECT_GT(test::n_lines(own), 9 * 12);
    EXPECT_NE(own, chosen);
    EXPECT_EQ(drawn(kind, folder + "/own.json"), own);
    EXPECT_EQ(drawn(kind, folder + "/11.json"), chosen);
    EXPECT_EQ(drawn(kind, folder + "/11.json", {"--dim-list", "11"}), chosen);
    const CliRun other =
        cli({"figure", kind, folder + "/own.json", "--dim-list", "37", "-o", folder + "/x.csv"});
    EXPECT_EQ(other.code, kExitUsage);
    EXPECT_THAT(other.err, HasSubstr("found that of the token's largest dimension"));
    const CliRun columns = cli({"figure", kind, path, "--dims", "11", "-o", folder + "/x.csv"});
    EXPECT_EQ(columns.code, kExitUsage);
    EXPECT_THAT(columns.err, HasSubstr("--dim-list"));
  }
}

TEST(RescaleVerb, PrintsTheFactorUnderAClip) {
  const std::string planted = std::string(SINKSCOPE_SOURCE_DIR) + "/sample_data/planted";
  const std::string folder = test::scratch_folder(), path = folder + "/run.h5";
  ASSERT_EQ(cli({"capture", planted, "--text", "a few bytes", "-o", path}).code, 0);
  const auto json =
      nlohmann::ordered_json::parse(cli({"rescale", path, "--clip", "16", "--json"}).out);
  EXPECT_EQ(json["clip"], 16);
  int n_clipped = 0;
  for (const auto& norm : json["norms"])
    for (std::size_t t = 0; t < norm["r2"].size(); ++t) {
      // Of one dimension the growth is alpha without it over alpha with it: clipped to 0, 1/alpha.
      const double alpha = norm["alpha"][t], growth = norm["clip_growth"][t];
      EXPECT_GE(growth, 1);
      EXPECT_LE(growth * alpha, 1 + 1e-9);
      n_clipped += growth > 1.01 ? 1 : 0;
    }
  EXPECT_GT(n_clipped, 12);
  EXPECT_THAT(cli({"rescale", path, "--clip", "16"}).out, HasSubstr("|h_d| <= 16"));
  EXPECT_EQ(cli({"rescale", path, "--clip", "0"}).code, kExitUsage);
}

TEST(RescaleVerb, RefusesToDrawTheBoundOfLayerNorms) {
  SINKSCOPE_REQUIRE_SHARED(gpt2, "oracles/gpt2");
  const std::string folder = test::scratch_folder(), path = folder + "/run.h5";
  ASSERT_EQ(cli({"capture", gpt2, "--tokens", "3,1,4,1,5", "-o", path}).code, 0);
  const CliRun bound = cli({"figure", "bound", path, "-o", folder + "/bound.csv"});
  EXPECT_EQ(bound.code, kExitUsage);
  EXPECT_THAT(bound.err, HasSubstr("it is no RMS norm: layer_norm"));
}
#endif

}  // namespace
}  // namespace sinkscope
