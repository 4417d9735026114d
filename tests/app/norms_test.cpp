// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/cli/run_cli.h"
#include "capture/checkpoint/model_files.h"
#include "tests/app/cli_run.h"
#include "tests/app/small_capture.h"
#include "tests/support/shared_files.h"

namespace sinkscope {
namespace {

using test::cli;
using test::CliRun;
using ::testing::EndsWith;
using ::testing::HasSubstr;

const std::string kPlanted = std::string(SINKSCOPE_SOURCE_DIR) + "/sample_data/planted";

const nlohmann::json& role(const nlohmann::json& json, const std::string& name) {
  for (const auto& entry : json["norms"])
    if (entry["role"] == name) return entry;
  throw std::runtime_error("no role " + name);
}

TEST(Norms, ThePlantedGainsAreFoundWithLayerAndDimension) {
  const CliRun run = cli({"norms", kPlanted, "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  const auto& ln2 = role(json, "ln2");
  EXPECT_EQ(ln2["layers"], nlohmann::json({0, 1, 2, 3}));
  EXPECT_EQ(ln2["starred"][0]["dim"], 37);
  EXPECT_NEAR(ln2["starred"][0]["value"].get<double>(), 0.01, 1e-7);
  EXPECT_EQ(ln2["starred"][1]["dim"], 11);
  EXPECT_EQ(ln2["min"][3]["dim"], 37);
  EXPECT_EQ(ln2["min"][0]["dim"], 11);
  EXPECT_NEAR(role(json, "ln_final")["min"][0]["value"].get<double>(), 0.05, 1e-7);
}

TEST(Norms, JsonHoldsWhatTheHelpPromises) {
  const auto json = nlohmann::ordered_json::parse(cli({"norms", kPlanted, "--json"}).out);
  EXPECT_EQ(json.items().begin().key(), "schema");
  const std::string help = cli({"norms", "--help"}).out;
  for (const auto& [key, value] : json.items()) EXPECT_THAT(help, HasSubstr(key)) << key;
  for (const auto& [key, value] : json["norms"][0].items())
    EXPECT_THAT(help, HasSubstr(key)) << key;
}

// Heads of two widths: every block's q/k norms are shown, each with the gains that it has.
TEST(Norms, NormsOfUnequalWidthsAreAllShown) {
  for (const char* name : {"gemma4", "gemma4_moe"}) {
    SINKSCOPE_REQUIRE_SHARED(folder, std::string("oracles/") + name);
    const CliRun run = cli({"norms", folder, "--json"});
    ASSERT_EQ(run.code, 0) << run.err;
    EXPECT_EQ(run.err, "");
    const auto json = nlohmann::json::parse(run.out);
    const auto model = open_model(folder);
    const auto& q = role(json, "q_norm");
    ASSERT_EQ(q["layers"].size(), static_cast<std::size_t>(model->spec().n_layers));
    EXPECT_EQ(q["width"], 16);
    EXPECT_EQ(q["non_finite_gains"], 0);
    const std::string text = cli({"norms", folder}).out;
    const std::string shown = text.substr(text.find("q_norm  rms norm"));
    EXPECT_THAT(shown.substr(0, shown.find('\n')),
                EndsWith(fmt::format(", {} or {} gains", model->spec().head_dim, 16)));
    EXPECT_THAT(text, HasSubstr(fmt::format(", {} gains\n", model->spec().d_model)));
    for (int layer = 0; layer < model->spec().n_layers; ++layer) {
      std::vector<float> gain = model->norm_gain(Role::q_norm, layer).effective;
      EXPECT_EQ(q["widths"][static_cast<std::size_t>(layer)], gain.size());
      const std::size_t row = shown.find(fmt::format("\n  blocks.{} (", layer));
      ASSERT_NE(row, std::string::npos);
      EXPECT_THAT(shown.substr(row + 1, shown.find('\n', row + 1) - row - 1),
                  EndsWith(fmt::format(")   {} gains", gain.size())));
      std::sort(gain.begin(), gain.end());
      EXPECT_EQ(q["max"][static_cast<std::size_t>(layer)]["value"].get<float>(), gain.back());
      EXPECT_EQ(q["median"][static_cast<std::size_t>(layer)].get<float>(),
                gain[(gain.size() - 1) / 2]);
    }
  }
}

TEST(Norms, TopSaysHowManyAreStarred) {
  const auto json = nlohmann::json::parse(cli({"norms", kPlanted, "--json", "--top", "1"}).out);
  EXPECT_EQ(role(json, "ln2")["starred"].size(), 1u);
  EXPECT_EQ(cli({"norms", kPlanted, "--top", "0"}).code, kExitUsage);
}

TEST(Norms, WithoutAConfigNothingIsMadeUp) {
  SINKSCOPE_REQUIRE_SHARED(model, "oracles/llama");
  const std::string folder = test::scratch_folder();
  std::filesystem::create_symlink(std::filesystem::absolute(model + "/model.safetensors"),
                                  folder + "/model.safetensors");
  const CliRun run = cli({"norms", folder});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("ln1  rms norm, eps not known, offset not known"));
  EXPECT_THAT(run.err, HasSubstr("no config.json: eps is not known"));
  const auto ln1 = role(nlohmann::json::parse(cli({"norms", folder, "--json"}).out), "ln1");
  EXPECT_TRUE(ln1["eps"].is_null());
  EXPECT_TRUE(ln1["offset"].is_null());
  const auto known = role(nlohmann::json::parse(cli({"norms", model, "--json"}).out), "ln1");
  EXPECT_EQ(known["eps"], 0.002);
  EXPECT_EQ(known["starred"][0]["raw"], ln1["starred"][0]["raw"]);
}

TEST(Norms, CsvHasARowPerNorm) {
  const CliRun run = cli({"norms", kPlanted, "--csv"});
  EXPECT_EQ(test::n_lines(run.out), 1 + 4 + 4 + 1);
}

TEST(Norms, TextNamesTheBlockAndTheDimension) {
  const CliRun run = cli({"norms", kPlanted});
  EXPECT_THAT(run.out, HasSubstr("dim 37"));
  EXPECT_THAT(run.out, HasSubstr("blocks.2 (3rd of 4)"));
}

TEST(Norms, OfACaptureToo) {
  const std::string path = test::small_capture(test::scratch_folder());
  const auto json = nlohmann::json::parse(cli({"norms", path, "-q", "--json"}).out);
  EXPECT_EQ(role(json, "ln1")["starred"][0]["dim"], 2);
}

// In Gemma 2 and 3 `post_attention_layernorm` is another norm than in Llama: the role comes first,
// the name in the file beside it.
TEST(FieldCases, FC12_NormsCarryTheirRoleAndTheirName) {
  SINKSCOPE_REQUIRE_SHARED(model, "oracles/llama");
  const auto json = nlohmann::json::parse(cli({"norms", model, "--json"}).out);
  EXPECT_EQ(json["tensors"]["ln2"][1], "model.layers.1.post_attention_layernorm.weight");
  EXPECT_THAT(cli({"norms", model}).out,
              HasSubstr("model.layers.0.post_attention_layernorm.weight"));
}

TEST(Norms, OfAGgufFile) {
  SINKSCOPE_REQUIRE_SHARED(model, "data/models/stories260Ktok512.gguf");
  const auto json = nlohmann::json::parse(cli({"norms", model, "--json"}).out);
  EXPECT_EQ(role(json, "ln1")["layers"].size(), 5u);
  EXPECT_EQ(role(json, "ln1")["width"], 64);
  EXPECT_EQ(json["tensors"]["ln_final"][0], "output_norm.weight");
}

}  // namespace
}  // namespace sinkscope
