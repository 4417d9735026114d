// SPDX-License-Identifier: GPL-3.0-or-later
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "app/cli/run_cli.h"
#include "tests/app/cli_run.h"
#include "tests/app/small_capture.h"
#include "tests/support/shared_files.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;
using test::cli;
using test::CliRun;
using ::testing::HasSubstr;

const std::string kPlanted = std::string(SINKSCOPE_SOURCE_DIR) + "/sample_data/planted";

TEST(Info, TheCardNamesTheShapes) {
  const CliRun run = cli({"info", kPlanted});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("4 query, 2 key/value, head_dim 16"));
  EXPECT_THAT(run.out, HasSubstr("d_model 64, mlp 80"));
  EXPECT_THAT(run.out, HasSubstr("144,064"));
  EXPECT_THAT(run.out, HasSubstr("BOS 256"));
  EXPECT_THAT(run.out, HasSubstr("F32"));
}

TEST(Info, OfACaptureNamesTheVerbForIt) {
  const std::string path = test::small_capture(test::scratch_folder());
  const CliRun run = cli({"info", path});
  EXPECT_EQ(run.code, kExitUsage);
  EXPECT_THAT(run.err, HasSubstr("a capture, expected a model; sinkscope sinks " + path));
}

TEST(Info, JsonHoldsWhatTheHelpPromises) {
  const CliRun run = cli({"info", kPlanted, "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = nlohmann::ordered_json::parse(run.out);
  EXPECT_EQ(json.items().begin().key(), "schema");
  EXPECT_EQ(json["n_layers"], 4);
  EXPECT_EQ(json["n_kv_heads"], 2);
  EXPECT_EQ(json["d_mlp"], 80);
  EXPECT_EQ(json["tokenizer"]["bos_id"], 256);
  EXPECT_EQ(json["tokenizer"]["adds_bos"], true);
  EXPECT_TRUE(json["obstacles"].empty());
  const std::string help = cli({"info", "--help"}).out;
  for (const auto& [key, value] : json.items()) EXPECT_THAT(help, HasSubstr(key)) << key;
}

TEST(Info, ArchJsonNamesEveryTensorByItsRole) {
  const auto json = nlohmann::json::parse(cli({"info", kPlanted, "--arch-json"}).out);
  EXPECT_EQ(json["spec"]["head_dim"], 16);
  EXPECT_EQ(json["roles"]["q"].size(), 4u);
  EXPECT_EQ(json["roles"]["q"][2], "model.layers.2.self_attn.q_proj.weight");
  EXPECT_FALSE(json["roles"].contains("q_bias"));
}

TEST(Info, AGgufFile) {
  SINKSCOPE_REQUIRE_SHARED(model, "data/models/stories260Ktok512.gguf");
  const auto json = nlohmann::json::parse(cli({"info", model, "--json"}).out);
  EXPECT_EQ(json["container"], "gguf");
  EXPECT_EQ(json["architecture"], "llama");
  EXPECT_EQ(json["tensors"], 48);
  EXPECT_EQ(json["n_kv_heads"], 4);
  EXPECT_EQ(json["head_dim"], 8);
  EXPECT_EQ(json["d_mlp"], 172);
  EXPECT_EQ(json["vocab_size"], 512);
  EXPECT_EQ(json["tokenizer"]["bos_id"], 1);
}

TEST(Info, AModelWithoutATokenizerSaysWhy) {
  SINKSCOPE_REQUIRE_SHARED(model, "oracles/llama");
  const auto json = nlohmann::json::parse(cli({"info", model, "--json"}).out);
  EXPECT_TRUE(json["tokenizer"].is_null());
  EXPECT_NE(json["tokenizer_reason"], "");
  EXPECT_EQ(json["head_dim"], 24);
  EXPECT_EQ(json["head_dim_source"], "config");
  EXPECT_EQ(json["rope"]["scaling"], "llama3");
  EXPECT_EQ(json["head"], "untied");
}

TEST(Info, CsvHasARowATensor) {
  const std::string csv = cli({"info", kPlanted, "--csv"}).out;
  EXPECT_EQ(csv.find("tensor,dtype,shape,elements,bytes,readable\n"), 0U);
  EXPECT_EQ(test::n_lines(csv), 1 + 39);
  EXPECT_THAT(csv,
              HasSubstr("\nmodel.layers.2.self_attn.k_proj.weight,F32,32x64,2048,8192,true\n"));
  EXPECT_THAT(csv, HasSubstr("\nmodel.norm.weight,F32,64,64,256,true\n"));
}

TEST(Info, WindowsAreShownWhereTheyAre) {
  SINKSCOPE_REQUIRE_SHARED(model, "oracles/mistral");
  EXPECT_THAT(cli({"info", model}).out, HasSubstr("7 keys on every layer"));
}

TEST(Info, AModelThatCannotBeRunIsStillDescribed) {
  SINKSCOPE_REQUIRE_SHARED(known, "oracles/deepseek_v4");
  const std::string model = test::scratch_folder() + "/model";
  fs::create_directory(model);
  fs::create_symlink(fs::absolute(known + "/model.safetensors"), model + "/model.safetensors");
  auto config = nlohmann::json::parse(test::read_file(known + "/config.json"));
  config["model_type"] = "martian";
  test::write_file(model, "config.json", config.dump());
  const CliRun run = cli({"info", model});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("cannot be run: "));
  const auto json = nlohmann::json::parse(cli({"info", model, "--json"}).out);
  EXPECT_FALSE(json["obstacles"].empty());
  // What is not known is not made up from defaults.
  EXPECT_TRUE(json["norm"].is_null() && json["rope"].is_null() && json["head"].is_null());
  EXPECT_THAT(run.out, ::testing::Not(HasSubstr("tied")));
}

TEST(Look, AModelWithoutAVerbIsDescribedWithTheNextCommand) {
  const CliRun run = cli({kPlanted});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("d_model 64"));
  EXPECT_THAT(run.out, HasSubstr("next: sinkscope sinks "));
}

}  // namespace
}  // namespace sinkscope
