// SPDX-License-Identifier: GPL-3.0-or-later
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/cli/run_cli.h"
#include "app/what_if_plan.h"
#include "core/capture_reader.h"
#include "core/error.h"
#include "core/what_if/outcome.h"
#include "tests/app/cli_run.h"
#include "tests/support/shared_files.h"

namespace sinkscope {
namespace {

using test::cli;
using test::CliRun;
using ::testing::AllOf;
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

// Both runs of a prompt are in the plan, and nothing is made.
TEST(WhatIfVerb, DryRunPlansBothSides) {
  const std::string tokens = "0,5,9,3,7";
  const auto plan = [&](const std::vector<std::string>& args) {
    const CliRun run = cli(args);
    EXPECT_EQ(run.code, 0) << run.err;
    return nlohmann::json::parse(run.out, nullptr, false);
  };
  const auto both = plan({"whatif", kPlanted, "--tokens", tokens, "--record", "stats", "--edit",
                          R"({"edit":"residual.clip","limit":50})", "--dry-run", "--json"});
  const auto one =
      plan({"capture", kPlanted, "--tokens", tokens, "--record", "stats", "--dry-run", "--json"});
  ASSERT_TRUE(both.is_object() && one.is_object());
  EXPECT_EQ(both["schema"], "sinkscope.plan/1");
  EXPECT_EQ(both["runs"], 2);
  EXPECT_EQ(both["tokens"], 10);
  EXPECT_GT(both["total_bytes"], one["total_bytes"]);
  EXPECT_LT(both["total_bytes"], 2 * one["total_bytes"].get<double>());  // the model is there once
}

// The command of a capture is a stranger's text.
TEST(WhatIfCommand, QuotesEveryWordAndRefusesWhatIsNoValue) {
  RunInput input;
  input.token_ids = {3, 1, 2};
  EXPECT_THAT(what_if_command({"my model", "our arch.json"}, input,
                              "capture --record stats,$(id);x --layers 0,1", {}, "f.h5"),
              AllOf(HasSubstr("sinkscope whatif 'my model' --arch 'our arch.json' "),
                    HasSubstr("--tokens 3,1,2 --record 'stats,$(id);x' --layers 0-1 -o f.h5")));
  for (const char* recorded :
       {"capture --device $(id)", "capture --threads 2;id", "capture --kernel `id`", "sinks", ""}) {
    EXPECT_THROW(check_recorded(recorded), Error) << recorded;
    EXPECT_THROW(what_if_command({"m"}, input, recorded, {}, "f.h5"), Error) << recorded;
  }
  EXPECT_THAT(what_if_command({"m"}, input, "capture", {}, "f.h5"),
              ::testing::Not(HasSubstr("--arch")));
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

nlohmann::json json_of(const CliRun& run) {
  EXPECT_EQ(run.code, 0) << run.err;
  return nlohmann::json::parse(run.out, nullptr, false);
}

const std::string kTokens = "0,5,9,3,7,2,8,4,6,1";
const std::string kClip = R"({"edit":"residual.clip","limit":10})";

// What a what-if prints and holds is the same whether its baseline runs with it or was recorded.
TEST(WhatIfVerb, BaselineOfAnotherCaptureGivesTheSameNumbers) {
  const std::string folder = test::scratch_folder();
  const auto joint = json_of(cli({"whatif", kPlanted, "--tokens", kTokens, "--edit", kClip, "-o",
                                  folder + "/joint.h5", "--json"}));
  for (const char* level : {"stream", "stats"}) {
    const std::string run = folder + "/" + level + ".h5", out = folder + "/of_" + level + ".h5";
    ASSERT_EQ(cli({"capture", kPlanted, "--tokens", kTokens, "--record", level, "-o", run}).code,
              0);
    auto alone =
        json_of(cli({"whatif", kPlanted, "--edit", kClip, "--baseline", run, "-o", out, "--json"}));
    EXPECT_EQ(alone["baseline_file"], run);
    alone.erase("baseline_file");
    for (const char* key : {"loss", "kl", "tokens", "runs", "edits", "max_abs"})
      EXPECT_EQ(alone[key], joint[key]) << level << ' ' << key;
    if (std::string(level) == "stream") {
      EXPECT_EQ(alone, joint);
    }
    const auto sinks = json_of(cli({"sinks", out, "--json"}));
    EXPECT_EQ(sinks["runs"][0]["name"], "run0_edit0");
    // The same prompt beside it is no contradiction.
    EXPECT_EQ(cli({"whatif", kPlanted, "--tokens", kTokens, "--edit", kClip, "--baseline", run,
                   "-o", out, "--force"})
                  .code,
              0);
  }
  const std::string help = cli({"whatif", "--help"}).out;
  EXPECT_THAT(help, HasSubstr("baseline_file"));
}

TEST(WhatIfVerb, BaselineOfAnotherModelOrOtherTokensIsNamed) {
  const std::string folder = test::scratch_folder(), run = folder + "/run.h5",
                    other = folder + "/other", out = folder + "/x.h5";
  ASSERT_EQ(cli({"capture", kPlanted, "--tokens", kTokens, "-o", run}).code, 0);
  ASSERT_EQ(cli({"absorb", kPlanted, "--tokens", "1,2,3", "--dims", "37", "-o", other}).code, 0);
  const auto refused = [&](const std::vector<std::string>& args) {
    std::vector<std::string> all = {"whatif"};
    all.insert(all.end(), args.begin(), args.end());
    for (const std::string& more : {std::string("--edit"), kClip, std::string("-o"), out})
      all.push_back(more);
    const CliRun result = cli(all);
    EXPECT_EQ(result.code, kExitUsage) << result.out;
    EXPECT_FALSE(std::filesystem::exists(out));
    return result.err;
  };
  EXPECT_THAT(refused({other, "--baseline", run}), HasSubstr("fingerprint"));
  EXPECT_THAT(refused({kPlanted, "--baseline", run, "--tokens", "0,5,9"}),
              HasSubstr("input_sha256"));
  EXPECT_THAT(refused({kPlanted, "--baseline", run, "--dtype", "bfloat16"}), HasSubstr("dtype"));
  EXPECT_THAT(refused({kPlanted, "--baseline", run, "--calibration", run}),
              HasSubstr("--calibration"));
  // An edited capture is no baseline, and nothing is written over the baseline itself.
  ASSERT_EQ(
      cli({"whatif", kPlanted, "--edit", kClip, "--baseline", run, "-o", folder + "/e.h5"}).code,
      0);
  EXPECT_THAT(refused({kPlanted, "--baseline", folder + "/e.h5"}), HasSubstr("edited"));
  const CliRun itself =
      cli({"whatif", kPlanted, "--edit", kClip, "--baseline", run, "-o", run, "--force"});
  EXPECT_EQ(itself.code, kExitUsage);
  EXPECT_THAT(itself.err, HasSubstr("is the input itself"));
}

// The path to the baseline is relative: both files move together.
TEST(WhatIfVerb, TheBaselineIsFoundBesideTheResult) {
  const std::string folder = test::scratch_folder();
  std::filesystem::create_directory(folder + "/a");
  ASSERT_EQ(cli({"capture", kPlanted, "--tokens", kTokens, "-o", folder + "/a/run.h5"}).code, 0);
  ASSERT_EQ(cli({"whatif", kPlanted, "--edit", kClip, "--baseline", folder + "/a/run.h5", "-o",
                 folder + "/a/edited.h5"})
                .code,
            0);
  std::filesystem::rename(folder + "/a", folder + "/b");
  const auto edited = CaptureReader::open(folder + "/b/edited.h5");
  EXPECT_GT(what_if_outcome(*edited, 0, SinkOptions{}).kl_mean, 0);
  std::filesystem::remove(folder + "/b/run.h5");
  EXPECT_THROW(what_if_outcome(*edited, 0, SinkOptions{}), Error);
}

// Blocks with linear attention have none that an edit of attention could touch, and that is said.
TEST(WhatIfVerb, NamesTheLayersThatAnAttentionEditTouches) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/kimi_linear");
  const std::string edits = R"([{"edit":"attention.normalizer","kind":"softmax1"},
                                {"edit":"mlp.activation","kind":"relu"}])";
  std::vector<std::string> args = {"whatif", folder, "--tokens", "5,6,7,3",
                                   "--edit", edits,  "-o",       test::scratch_folder() + "/x.h5"};
  EXPECT_THAT(cli(args).out,
              AllOf(HasSubstr("attention.normalizer: layers 2 (the others have no softmax"),
                    HasSubstr("mlp.activation: layers all")));
  args.insert(args.end(), {"--json", "--force"});
  const auto json = json_of(cli(args));
  EXPECT_EQ(json["touched"][0]["layers"], nlohmann::json({2}));
  EXPECT_EQ(json["touched"][1]["layers"], "all");
  EXPECT_FALSE(json.contains("final_norm_change"));
}

// An encoder has no loss; how far its states move is said in its place.
TEST(WhatIfVerb, AModelWithoutAHeadSaysWhatItsStatesDo) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/bert");
  const std::string out = test::scratch_folder() + "/x.h5";
  std::vector<std::string> args = {
      "whatif",  folder,   "--tokens",
      "5,6,7,3", "--edit", R"({"edit":"attention.value","tokens":[1],"scale":0})",
      "-o",      out};
  EXPECT_THAT(cli(args).out, AllOf(HasSubstr("has no head: no loss and no KL"),
                                   HasSubstr("final norm: |edited - baseline|")));
  args.insert(args.end(), {"--json", "--force"});
  const auto json = json_of(cli(args));
  EXPECT_TRUE(json["kl"].is_null());
  const auto reader = CaptureReader::open(out);
  const std::vector<float> x = reader->read_f32("run0", "residual/final_norm"),
                           y = reader->read_f32("run0_edit0", "residual/final_norm");
  double mean = 0, largest = 0;
  for (std::size_t t = 0; t < 4; ++t) {
    double difference = 0, size = 0;
    for (std::size_t i = t * x.size() / 4; i < (t + 1) * x.size() / 4; ++i) {
      difference += std::pow(static_cast<double>(y[i]) - x[i], 2);
      size += std::pow(static_cast<double>(x[i]), 2);
    }
    mean += std::sqrt(difference / size) / 4;
    largest = std::fmax(largest, std::sqrt(difference / size));
  }
  EXPECT_GT(mean, 1e-3);
  EXPECT_NEAR(json["final_norm_change"]["mean"], mean, 1e-9);
  EXPECT_NEAR(json["final_norm_change"]["max"], largest, 1e-9);
  const CliRun probe = cli({"probe", folder, "--tokens", "5,6,7,3"});
  EXPECT_EQ(probe.code, kExitUnsupported);
  EXPECT_THAT(probe.err, HasSubstr("has no head, so no loss"));
}

// FC-57: zero, a calibrated mean, a clip and keep-only, any sites, tokens and dimensions, several
// at once; what was touched is listed.
TEST(FieldCases, FC57_InterventionsTakeAnySitesTokensAndDimensions) {
  const std::string folder = test::scratch_folder(), out = folder + "/x.h5";
  const std::string calibration = test::write_file(
      folder, "calibration.jsonl", "{\"tokens\":[9,5,9,3]}\n{\"tokens\":[8,2,2]}\n");
  const std::string edits = R"([{"edit":"residual.set","value":"mean","dims":[37],"tokens":"first"},
      {"edit":"residual.set","value":0,"dims":"0-10,12-63","tokens":[3],"layers":[1],
       "sites":["hook_resid_mid"]},
      {"edit":"residual.clip","limit":50,"tokens":"rest"}])";
  const auto json = json_of(cli({"whatif", kPlanted, "--tokens", kTokens, "--edit", edits,
                                 "--calibration", calibration, "-o", out, "--json"}));
  ASSERT_EQ(json["touched"].size(), 3u);
  EXPECT_EQ(json["touched"][0]["tokens"], nlohmann::json({{0}}));
  EXPECT_EQ(json["touched"][0]["dims"], nlohmann::json({37}));
  EXPECT_EQ(json["touched"][1]["tokens"], nlohmann::json({{3}}));
  EXPECT_EQ(json["touched"][1]["layers"], nlohmann::json({1}));
  EXPECT_EQ(json["touched"][2]["tokens"][0].size(), 9u);
  EXPECT_EQ(json["touched"][2]["dims"], "all");
  const auto reader = CaptureReader::open(out);
  EXPECT_EQ(reader->text_attribute("run0_edit0", "", "calibration_sha256"),
            input_sha256({9, 5, 9, 3, 8, 2, 2}));
}

// FC-55: a swap in a model that was not trained for it is never passed off as evidence.
TEST(FieldCases, FC55_ASwapSaysNotRetrainedAndShowsTheKlToTheOriginal) {
  const std::string folder = test::scratch_folder();
  const std::vector<std::string> command = {
      "whatif", kPlanted, "--tokens",
      kTokens,  "--edit", R"({"edit":"norm.replace","with":"dyt","norms":["ln2"]})",
      "-o"};
  auto text = command, json = command;
  text.push_back(folder + "/a.h5");
  json.insert(json.end(), {folder + "/b.h5", "--json"});
  const CliRun said = cli(text);
  EXPECT_THAT(said.out, HasSubstr("not retrained"));
  EXPECT_THAT(said.out, HasSubstr("KL"));
  const auto values = json_of(cli(json));
  EXPECT_EQ(values["not_retrained"], true);
  EXPECT_THAT(values["conventions"]["dyt"].dump(), HasSubstr("least squares"));
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
  const CliRun lonely = cli({"probe", kPlanted, "--tokens", "1", "--dims", "11"});
  EXPECT_EQ(lonely.code, kExitUsage);
  EXPECT_THAT(lonely.err, HasSubstr("at least two tokens"));
}

// One first token: a mean over it is its value.
TEST(ProbeVerb, TakesNoMeanOverASinglePosition) {
  const std::vector<std::string> probe = {"probe",     kPlanted, "--tokens",
                                          "0,5,9,3,7", "--dims", "11"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = probe;
    words.insert(words.end(), more.begin(), more.end());
    return cli(words);
  };
  const CliRun none = with({"--at", "first", "--modes", "mean,direct_const"});
  EXPECT_EQ(none.code, kExitUsage);
  EXPECT_THAT(none.err, HasSubstr("a mean over a single position is its value"));
  const CliRun both = with({"--modes", "mean,zero", "--json"});
  ASSERT_EQ(both.code, 0) << both.err;
  const auto json = nlohmann::json::parse(both.out);
  for (const auto& row : json["probes"])
    EXPECT_FALSE(row["at"] == "first" && row["mode"] == "mean") << row;
  EXPECT_EQ(json["not_measured"].size(), 3u);
  const CliRun idle = cli({"whatif", kPlanted, "--tokens", "0,5,9", "--edit",
                           R"({"edit":"norm.probe","mode":"mean","dims":[11],"tokens":"first"})",
                           "-o", test::scratch_folder() + "/x.h5"});
  EXPECT_EQ(idle.code, kExitUsage);
  EXPECT_THAT(idle.err, HasSubstr("the mean is over a single position"));
}
#endif

}  // namespace
}  // namespace sinkscope
