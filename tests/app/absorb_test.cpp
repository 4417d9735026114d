// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/absorb.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "app/cli/run_cli.h"
#include "core/capture_reader.h"
#include "core/error.h"
#include "tests/app/cli_run.h"
#include "tests/support/shared_files.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;
using test::cli;
using test::CliRun;
using ::testing::HasSubstr;

const std::string kPlanted = std::string(SINKSCOPE_SOURCE_DIR) + "/sample_data/planted";

TEST(Absorb, DividesWritersAndMultipliesReaders) {
  const std::string folder = test::scratch_folder() + "/out";
  const auto model = open_model(kPlanted);
  write_absorbed(*model, {{37, 11}, {4, .5}}, folder);
  const auto made = open_model(folder);
  ASSERT_TRUE(made->obstacles().empty()) << made->obstacles().front();
  EXPECT_TRUE(made->spec().pre_affine);
  EXPECT_EQ(made->spec().tied, model->spec().tied);
  EXPECT_FALSE(model->spec().pre_affine);
  const int D = model->spec().d_model;
  const auto rows = [](const ModelFiles& from, Role role, int layer) {
    std::vector<float> values(
        static_cast<std::size_t>(from.rows(role, layer) * from.cols(role, layer)));
    from.read_rows(role, layer, 0, from.rows(role, layer), values.data());
    return values;
  };
  const auto embed = rows(*model, Role::embed, kNoLayer), now = rows(*made, Role::embed, kNoLayer);
  const auto down = rows(*model, Role::down, 1), down_now = rows(*made, Role::down, 1);
  const auto width = static_cast<std::size_t>(D), mlp = down.size() / width;
  for (std::size_t i = 0; i < embed.size(); ++i) {
    const float k = i % width == 37 ? 4 : i % width == 11 ? .5f : 1;
    ASSERT_EQ(now[i], embed[i] / k) << i;
  }
  for (std::size_t i = 0; i < down.size(); ++i) {
    const float k = i / mlp == 37 ? 4 : i / mlp == 11 ? .5f : 1;
    ASSERT_EQ(down_now[i], down[i] / k) << i;
  }
  EXPECT_EQ(rows(*made, Role::q, 2), rows(*model, Role::q, 2));
  for (const auto& [role, layer] :
       {std::pair{Role::ln1_pre, 3}, {Role::ln2_pre, 0}, {Role::ln_final_pre, kNoLayer}}) {
    const auto pre = made->read_vector(role, layer);
    EXPECT_EQ(pre[37], 4);
    EXPECT_EQ(pre[11], .5);
    EXPECT_EQ(pre[0], 1);
  }
  // Absorbed once more: gains multiply.
  const std::string again = test::scratch_folder() + "/again";
  write_absorbed(*made, {{37}, {2}}, again);
  EXPECT_EQ(open_model(again)->read_vector(Role::ln1_pre, 0)[37], 8);
}

// A model whose norms stand behind its halves: those are the writers, and the matrices that read
// the stream past no norm the readers.
TEST(Absorb, RestoresTheStreamWhereNoNormReadsIt) {
  SINKSCOPE_REQUIRE_SHARED(olmo2, "oracles/olmo2");
  const std::string folder = test::scratch_folder() + "/out";
  const auto model = open_model(olmo2);
  write_absorbed(*model, {{7}, {4}}, folder);
  const auto made = open_model(folder);
  ASSERT_TRUE(made->obstacles().empty()) << made->obstacles().front();
  EXPECT_TRUE(fs::exists(folder + "/sinkscope_arch.json"));
  EXPECT_FALSE(fs::exists(folder + "/config.json"));
  const auto rows = [](const ModelFiles& from, Role role, int layer) {
    std::vector<float> values(
        static_cast<std::size_t>(from.rows(role, layer) * from.cols(role, layer)));
    from.read_rows(role, layer, 0, from.rows(role, layer), values.data());
    return values;
  };
  const auto D = static_cast<std::size_t>(model->spec().d_model);
  for (const Role role : {Role::q, Role::v, Role::up}) {
    const auto before = rows(*model, role, 1), after = rows(*made, role, 1);
    for (std::size_t i = 0; i < before.size(); ++i)
      ASSERT_EQ(after[i], before[i] * (i % D == 7 ? 4 : 1)) << to_string(role) << ' ' << i;
  }
  EXPECT_EQ(rows(*made, Role::down, 2), rows(*model, Role::down, 2));
  EXPECT_EQ(made->norm_gain(Role::ln2_post, 2).effective[7],
            model->norm_gain(Role::ln2_post, 2).effective[7] / 4);
  EXPECT_FALSE(made->has(Role::ln1_pre, 0));
  EXPECT_EQ(made->read_vector(Role::ln_final_pre, kNoLayer)[7], 4);
}

TEST(Absorb, SaysOfWhichModelsItWouldMakeAnotherOne) {
  const std::map<std::string, std::string> why = {{"bert", "behind the sums"},
                                                  {"inkling2", "attention over depth"},
                                                  {"deepseek_v4", "several residual streams"},
                                                  {"qwen4_exp", "several residual streams"},
                                                  {"gemma4", "an input of its own"},
                                                  {"gemma4_moe", "router of its experts"}};
  for (const auto& [name, reason] : why) {
    SINKSCOPE_REQUIRE_SHARED(folder, "oracles/" + name);
    const std::string out = test::scratch_folder() + "/out";
    try {
      write_absorbed(*open_model(folder), {{3}, {2}}, out);
      ADD_FAILURE() << name << " was written";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::unsupported);
      EXPECT_THAT(error.what(), HasSubstr(reason)) << name;
    }
    EXPECT_FALSE(fs::exists(out));
  }
}

TEST(Absorb, StopsBetweenTwoPieces) {
  const std::string folder = test::scratch_folder() + "/out";
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(write_absorbed(*open_model(kPlanted), {{37}, {2}}, folder, stop.get_token()));
  EXPECT_TRUE(fs::is_empty(folder));
}

TEST(Absorb, TakesTheTokenizersFilesOrSaysWhichItCannot) {
  const std::string folder = test::scratch_folder(), mine = folder + "/mine";
  fs::copy(kPlanted, mine);
  test::write_file(mine, "added_tokens.json", "{}");
  write_absorbed(*open_model(mine), {{37}, {2}}, folder + "/out");
  EXPECT_TRUE(fs::exists(folder + "/out/tokenizer.json"));
  EXPECT_TRUE(fs::exists(folder + "/out/added_tokens.json"));
  fs::create_directory(mine + "/tokenizer.model");
  const auto model = open_model(mine);
  try {
    write_absorbed(*model, {{37}, {2}}, folder + "/again");
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_THAT(error.what(), HasSubstr("tokenizer.model: cannot be copied"));
  }
}

TEST(Absorb, RefusesWhatItCannotDo) {
  const std::string folder = test::scratch_folder();
  const auto model = open_model(kPlanted);
  EXPECT_THROW(write_absorbed(*model, {{64}, {2}}, folder + "/x"), Error);
  EXPECT_THROW(write_absorbed(*model, {{1}, {0}}, folder + "/x"), Error);
  EXPECT_THROW(write_absorbed(*model, {{}, {}}, folder + "/x"), Error);
  test::write_file(folder, "mine.txt", "keep");
  EXPECT_THROW(write_absorbed(*model, {{1}, {2}}, folder), Error);
  EXPECT_FALSE(fs::exists(folder + "/x"));
  EXPECT_EQ(absorbing_factor(25804, 90), 256);
  EXPECT_EQ(absorbing_factor(1, 90), 1);
}

#ifdef SINKSCOPE_WITH_TORCH
TEST(AbsorbVerb, KeepsTheFunctionAndShrinksTheStream) {
  const std::string folder = test::scratch_folder(), out = folder + "/absorbed";
  const CliRun run =
      cli({"absorb", kPlanted, "--text", "a few bytes", "--dims", "37", "-o", out, "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = nlohmann::ordered_json::parse(run.out);
  EXPECT_EQ(json["schema"], "sinkscope.absorb/1");
  EXPECT_EQ(json["logits"]["largest_difference"], 0);  // a power of two
  EXPECT_EQ(json["max_abs"]["before"], 4096);
  EXPECT_LT(json["max_abs"]["after"], 64);
  const std::string help = cli({"absorb", "--help"}).out;
  for (const auto& [key, value] : json.items()) EXPECT_THAT(help, HasSubstr(key)) << key;
  // The same text, tokenized by the copied tokenizer, gives the same loss; norms see what they saw.
  const auto capture = [&](const std::string& model, const std::string& name) {
    const std::string path = folder + "/" + name;
    EXPECT_EQ(cli({"capture", model, "--text", "a few bytes", "-o", path}).code, 0);
    return nlohmann::json::parse(cli({"rescale", path, "--json"}).out);
  };
  const auto before = capture(kPlanted, "before.h5"), after = capture(out, "after.h5");
  EXPECT_EQ(after["points_above_bound"], 0);
  EXPECT_EQ(before["norms"][5]["r2"], after["norms"][5]["r2"]);
  const auto evidence = [&](const std::string& name, const std::string& model) {
    return nlohmann::json::parse(
        cli({"rescale", folder + "/" + name, "--model", model, "--dims", "37", "--json"}).out);
  };
  const auto one = evidence("before.h5", kPlanted), two = evidence("after.h5", out);
  EXPECT_EQ(two["points_above_bound"], 0);
  EXPECT_NEAR(one["norms"][5]["alpha"][0], two["norms"][5]["alpha"][0], 1e-6);
  EXPECT_NEAR(one["norms"][5]["next_linear"][0], two["norms"][5]["next_linear"][0], 1e-5);
  EXPECT_THAT(cli({"absorb", kPlanted, "-o", out + "/"}).err, HasSubstr("exists already"));
}

// Every family whose stream is read through norms alone, or past them by matrices: logits stay, the
// stream shrinks, and the folder opens again with nothing but itself.
class AbsorbFamily : public ::testing::TestWithParam<std::string> {};

TEST_P(AbsorbFamily, ComputesTheSame) {
  SINKSCOPE_REQUIRE_SHARED(model, "oracles/" + GetParam());
  const std::string folder = test::scratch_folder(), out = folder + "/absorbed";
  // No power of two, so that every product rounds; two dimensions at once.
  const CliRun run = cli({"absorb", model, "--tokens", "5,3,17,5,30,9,21,2,11,40", "--dims", "3,7",
                          "--factor", "48", "-o", out, "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_LE(json["logits"]["relative"], 1e-4);
  EXPECT_GT(json["logits"]["largest"], 0);
  const auto made = open_model(out), given = open_model(model);
  EXPECT_EQ(made->spec().tied, given->spec().tied);
  EXPECT_EQ(made->spec().n_heads, given->spec().n_heads);
  // Dimension 3 is 48 times smaller in the stream that it writes, and what the norms see is not.
  const auto capture = [&](const std::string& from, const std::string& name) {
    const std::string path = folder + "/" + name;
    EXPECT_EQ(cli({"capture", from, "--tokens", "5,3,17,5,30", "-o", path}).code, 0);
    return CaptureReader::open(path);
  };
  const auto before = capture(model, "before.h5"), after = capture(out, "after.h5");
  const auto x = before->read_f32("run0", "residual/stream"),
             y = after->read_f32("run0", "residual/stream");
  const auto D = static_cast<std::size_t>(given->spec().d_model);
  ASSERT_EQ(x.size(), y.size());
  double largest = 0;
  for (float value : x) largest = std::max(largest, double{std::abs(value)});
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double k = i % D == 3 || i % D == 7 ? 48 : 1;
    ASSERT_NEAR(y[i] * k, x[i], 1e-4 * largest) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Oracles, AbsorbFamily,
                         ::testing::Values("llama_tied", "qwen3", "gemma2", "gemma3", "olmo2",
                                           "olmo3", "phi3", "gpt2", "opt", "gpt_neox", "granite",
                                           "smollm3", "mixtral", "qwen3_moe", "gpt_oss",
                                           "deepseek_v3", "qwen3_next", "axk2", "kimi_linear",
                                           "mimo_v2_flash"),
                         [](const auto& test) { return test.param; });

class AbsorbGguf : public ::testing::TestWithParam<std::string> {};

// The folder cuts text as the GGUF file does and places tokens as it does.
TEST_P(AbsorbGguf, KeepsTokenizerAndRotaryPositions) {
  SINKSCOPE_REQUIRE_SHARED(gguf, "oracles/" + GetParam() + "/model.gguf");
  const std::string folder = test::scratch_folder(), out = folder + "/absorbed";
  const CliRun run =
      cli({"absorb", gguf, "--text", "a few words", "--dims", "3", "--factor", "8", "-o", out});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto ids = [](const std::string& model) {
    const CliRun cut = cli({"tokenize", model, "--text", "some other words", "--json"});
    EXPECT_EQ(cut.code, 0) << cut.err;
    return nlohmann::json::parse(cut.out, nullptr, false);
  };
  EXPECT_EQ(ids(out), ids(gguf));
  // Far apart, where rotary positions would show.
  std::string tokens = "5";
  for (int i = 1; i < 100; ++i) tokens += "," + std::to_string((i * 37) % 157);
  const auto loss = [&](const std::string& model, const std::string& name) {
    const CliRun made =
        cli({"capture", model, "--tokens", tokens, "-o", folder + "/" + name, "--json"});
    EXPECT_EQ(made.code, 0) << made.err;
    return nlohmann::json::parse(made.out, nullptr, false)["mean_loss"].get<double>();
  };
  EXPECT_NEAR(loss(out, "after.h5"), loss(gguf, "before.h5"), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Oracles, AbsorbGguf, ::testing::Values("qwen2_gguf"),
                         [](const auto& test) { return test.param; });

TEST(AbsorbVerb, AFailedSelfCheckKeepsNothing) {
  // 1e9 is no power of two: logits move in their last digits.
  const std::string out = test::scratch_folder() + "/absorbed";
  const CliRun run = cli({"absorb", kPlanted, "--text", "a few bytes", "--dims", "0-63", "--factor",
                          "1e9", "--tolerance", "1e-12", "-o", out});
  EXPECT_EQ(run.code, kExitCheck) << run.out;
  EXPECT_THAT(run.err, HasSubstr("self-check failed"));
  EXPECT_FALSE(fs::exists(out));
  EXPECT_FALSE(fs::exists(out + ".part"));
}
#endif

}  // namespace
}  // namespace sinkscope
