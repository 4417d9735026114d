// SPDX-License-Identifier: GPL-3.0-or-later
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/cli/run_cli.h"
#include "tests/app/cli_run.h"
#include "tests/support/shared_files.h"

namespace sinkscope {
namespace {

using test::cli;
using test::CliRun;
using ::testing::HasSubstr;

const std::string kPlanted = std::string(SINKSCOPE_SOURCE_DIR) + "/sample_data/planted";

TEST(WhatIfVerb, RefusesEditsItDoesNotUnderstand) {
  const std::string folder = test::scratch_folder();
  const std::string file =
      test::write_file(folder, "edits.json", R"([{"edit":"residual.clip","limit":0}])");
  const CliRun bad = cli({"whatif", kPlanted, "--edit", file, "-o", folder + "/x.h5"});
  EXPECT_EQ(bad.code, kExitUsage);
  EXPECT_THAT(bad.err, HasSubstr("edits.json"));
  EXPECT_THAT(bad.err, HasSubstr("limit above 0"));
  EXPECT_EQ(cli({"whatif", kPlanted, "-o", folder + "/x.h5"}).code, kExitUsage);
  EXPECT_EQ(cli({"whatif", kPlanted, "--edit", "{}", "-o", folder + "/x.h5"}).code, kExitUsage);
  EXPECT_FALSE(std::filesystem::exists(folder + "/x.h5"));
}

#ifdef SINKSCOPE_WITH_TORCH
TEST(WhatIfVerb, PrintsWhatTheHelpPromises) {
  const std::string folder = test::scratch_folder(), out = folder + "/clip.h5";
  const CliRun run = cli({"whatif", kPlanted, "--tokens", "0,5,9,3,7,2,8,4,6,1", "--edit",
                          R"({"edit":"residual.clip","limit":50})", "--edit",
                          R"({"edit":"attention.mask_key","keys":[0]})", "-o", out, "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = nlohmann::ordered_json::parse(run.out);
  EXPECT_EQ(json.items().begin().key(), "schema");
  EXPECT_EQ(json["schema"], "sinkscope.whatif/1");
  EXPECT_EQ(json["tokens"], 10);
  ASSERT_EQ(json["edits"].size(), 2u);
  EXPECT_EQ(json["edits"][1]["edit"], "attention.mask_key");
  EXPECT_EQ(json["not_retrained"], true);
  EXPECT_GT(json["kl"]["max"], json["kl"]["mean"]);
  EXPECT_GT(json["kl"]["mean"], 0);
  // The planted spike of 4,096 is cut, and nothing grew beyond the limit anywhere.
  for (const auto& peak : json["max_abs"]["edited"]) EXPECT_LE(peak["value"], 50);
  const std::string help = cli({"whatif", "--help"}).out;
  for (const auto& [key, value] : json.items()) EXPECT_THAT(help, HasSubstr(key)) << key;
  // The file is an ordinary capture: the twin opens by its name, and --run all leaves it alone.
  const CliRun twin = cli({"sinks", out + "::run0_edit0", "--json"});
  ASSERT_EQ(twin.code, 0) << twin.err;
  EXPECT_EQ(nlohmann::json::parse(twin.out)["runs"][0]["name"], "run0_edit0");
  const CliRun all = cli({"sinks", out, "--run", "all", "--json"});
  EXPECT_EQ(nlohmann::json::parse(all.out)["runs"].size(), 1u);
}

TEST(WhatIfVerb, WithoutAnEffectTheNumbersAreTheBaselines) {
  const std::string folder = test::scratch_folder();
  const CliRun run = cli({"whatif", kPlanted, "--tokens", "0,5,9,3,7", "--edit", "[]", "-o",
                          folder + "/same.h5", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["loss"]["baseline"], json["loss"]["edited"]);
  EXPECT_EQ(json["kl"]["max"], 0);
  for (const auto& [name, values] : json["metrics"].items())
    EXPECT_EQ(values["baseline"], values["edited"]) << name;
}

TEST(ProbeVerb, FindsThePlantedDimensionAndMeasuresEveryReader) {
  const std::string folder = test::scratch_folder(), out = folder + "/probe.json";
  const CliRun run = cli({"probe", kPlanted, "--tokens", "0,5,9,3,7,2,8,4,6,1,5,3", "--modes",
                          "zero,direct,denominator", "--json", "-o", out});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = nlohmann::ordered_json::parse(run.out);
  EXPECT_EQ(json["schema"], "sinkscope.probe/1");
  EXPECT_EQ(json["dims"], nlohmann::json({11}));
  EXPECT_EQ(json["probes"].size(), 4u * (2u * 3u + 1u));
  EXPECT_EQ(json["verdicts"].size(), 8u);
  EXPECT_EQ(nlohmann::ordered_json::parse(test::read_file(out)), json);
  const std::string help = cli({"probe", "--help"}).out;
  for (const auto& [key, value] : json.items()) EXPECT_THAT(help, HasSubstr(key)) << key;
}

TEST(WhatIfVerb, AnEditThatCannotTakeEffectLeavesNoFile) {
  const std::string folder = test::scratch_folder(), out = folder + "/x.h5";
  test::write_file(folder, "x.h5.part", "an earlier recording");
  const CliRun run = cli({"whatif", kPlanted, "--tokens", "0,5,9", "--force", "--edit",
                          R"({"edit":"residual.clip","limit":1,"layers":[99]})", "-o", out});
  EXPECT_EQ(run.code, kExitUsage);
  EXPECT_THAT(run.err, HasSubstr("99 does not exist"));
  EXPECT_FALSE(std::filesystem::exists(out));
  EXPECT_EQ(test::read_file(out + ".part"), "an earlier recording");
}

TEST(ProbeVerb, RefusesModesAndDimensionsThatAreNotThere) {
  EXPECT_EQ(cli({"probe", kPlanted, "--tokens", "1,2,3", "--dims", "all"}).code, kExitUsage);
  EXPECT_EQ(cli({"probe", kPlanted, "--tokens", "1,2,3", "--modes", "half"}).code, kExitUsage);
  EXPECT_EQ(cli({"probe", kPlanted, "--tokens", "1,2,3", "--dims", "9999"}).code, kExitUsage);
}
#endif

}  // namespace
}  // namespace sinkscope
