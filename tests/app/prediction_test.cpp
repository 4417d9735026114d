// SPDX-License-Identifier: GPL-3.0-or-later
// What --dry-run predicts, against what a recording in a process of its own took: the file within
// 5 %, the peak of memory within 25 %.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "tests/app/cli_run.h"
#include "tests/support/demo_model.h"
#include "tests/support/shared_files.h"

namespace sinkscope::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Shapes = std::map<std::string, std::vector<std::int64_t>>;

// "3,5,7,…": n tokens of a vocabulary.
std::string tokens(int n, int vocabulary) {
  std::string text;
  std::mt19937 random(7);
  for (int i = 0; i < n; ++i)
    text += fmt::format("{}{}", i > 0 ? "," : "", random() % static_cast<unsigned>(vocabulary));
  return text;
}

enum class Values { random, holes };

// A folder of random weights, one block of them again and again; or of zeros that take no room.
std::string write_model(const std::string& folder, const Json& config, const Shapes& shapes,
                        Values values = Values::random) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 0.02f);
  std::vector<float> block((1 << 20) + 1);
  for (float& x : block) x = normal(random);
  Json header;
  std::int64_t at = 0;
  for (const auto& [name, shape] : shapes) {
    std::int64_t bytes = 4;
    for (const std::int64_t dim : shape) bytes *= dim;
    header[name] = {{"dtype", "F32"}, {"shape", shape}, {"data_offsets", {at, at + bytes}}};
    at += bytes;
  }
  const std::string text = header.dump();
  const std::uint64_t size = text.size();
  std::ofstream file(folder + "/model.safetensors", std::ios::binary);
  file.write(reinterpret_cast<const char*>(&size), sizeof size);
  file << text;
  for (std::int64_t left = values == Values::random ? at : 0; left > 0;) {
    const auto piece = std::min<std::int64_t>(left, static_cast<std::int64_t>(block.size()) * 4);
    file.write(reinterpret_cast<const char*>(block.data()), piece);
    left -= piece;
  }
  file.close();
  fs::resize_file(folder + "/model.safetensors",
                  sizeof size + size + static_cast<std::uint64_t>(at));
  write_file(folder, "config.json", config.dump());
  return folder;
}

constexpr int kVocabulary = 512, kHidden = 640, kHeads = 10, kKvHeads = 2, kHeadDim = 64;

Json config_of(const std::string& family, int n_layers) {
  return {{"model_type", family},
          {"hidden_size", kHidden},
          {"num_hidden_layers", n_layers},
          {"num_attention_heads", kHeads},
          {"num_key_value_heads", kKvHeads},
          {"head_dim", kHeadDim},
          {"intermediate_size", 2560},
          {"vocab_size", kVocabulary},
          {"max_position_embeddings", 4096},
          {"rms_norm_eps", 1e-5},
          {"rope_theta", 1e4},
          {"hidden_act", "silu"},
          {"tie_word_embeddings", true}};
}

void add_attention(Shapes& shapes, const std::string& block, int hidden = kHidden) {
  shapes[block + "input_layernorm.weight"] = {hidden};
  shapes[block + "post_attention_layernorm.weight"] = {hidden};
  shapes[block + "self_attn.q_proj.weight"] = {kHeads * kHeadDim, hidden};
  shapes[block + "self_attn.k_proj.weight"] = {kKvHeads * kHeadDim, hidden};
  shapes[block + "self_attn.v_proj.weight"] = {kKvHeads * kHeadDim, hidden};
  shapes[block + "self_attn.o_proj.weight"] = {hidden, kHeads * kHeadDim};
}

// 5 blocks of 24 MB.
std::string dense_model() {
  Shapes shapes = {{"model.embed_tokens.weight", {kVocabulary, kHidden}},
                   {"model.norm.weight", {kHidden}}};
  for (int layer = 0; layer < 5; ++layer) {
    const std::string block = fmt::format("model.layers.{}.", layer);
    add_attention(shapes, block);
    shapes[block + "mlp.gate_proj.weight"] = {2560, kHidden};
    shapes[block + "mlp.up_proj.weight"] = {2560, kHidden};
    shapes[block + "mlp.down_proj.weight"] = {kHidden, 2560};
  }
  return write_model(scratch_folder(), config_of("llama", 5), shapes);
}

// 2 blocks of 64 experts, 1 MB each.
std::string mixture_model() {
  constexpr int kExperts = 64, kWidth = 136;
  Shapes shapes = {{"model.embed_tokens.weight", {kVocabulary, kHidden}},
                   {"model.norm.weight", {kHidden}}};
  for (int layer = 0; layer < 2; ++layer) {
    const std::string block = fmt::format("model.layers.{}.", layer);
    add_attention(shapes, block);
    shapes[block + "self_attn.q_norm.weight"] = {kHeadDim};
    shapes[block + "self_attn.k_norm.weight"] = {kHeadDim};
    shapes[block + "mlp.gate.weight"] = {kExperts, kHidden};
    for (int e = 0; e < kExperts; ++e) {
      const std::string expert = fmt::format("{}mlp.experts.{}.", block, e);
      shapes[expert + "gate_proj.weight"] = {kWidth, kHidden};
      shapes[expert + "up_proj.weight"] = {kWidth, kHidden};
      shapes[expert + "down_proj.weight"] = {kHidden, kWidth};
    }
  }
  Json config = config_of("qwen3_moe", 2);
  config["num_experts"] = kExperts;
  config["num_experts_per_tok"] = 4;
  config["moe_intermediate_size"] = kWidth;
  return write_model(scratch_folder(), config, shapes);
}

struct Taken {
  Json predicted, real;
  double memory() const {
    return predicted["predicted_memory_bytes"].get<double>() / real["peak_rss_bytes"].get<double>();
  }
  double file() const {
    return predicted["total_bytes"].get<double>() / real["file_bytes"].get<double>();
  }
};

Taken take(const std::string& model, const std::string& flags) {
  const std::string command = fmt::format("sinkscope capture '{}' {} --json -q", model, flags),
                    folder = scratch_folder();
  const CliRun dry = shell(command + " --dry-run", folder);
  const CliRun run = shell(command + " -o run.h5; rm -f run.h5", folder);
  EXPECT_EQ(dry.code, 0) << dry.err;
  Taken taken{Json::parse(dry.out, nullptr, false), Json::parse(run.out, nullptr, false)};
  EXPECT_TRUE(taken.predicted.is_object()) << dry.err;
  EXPECT_TRUE(taken.real.is_object()) << run.err;
  return taken;
}

void expect_foretold(const std::string& model, const std::string& flags) {
  SCOPED_TRACE(model + " " + flags.substr(0, flags.find("--tokens")));
  const Taken taken = take(model, flags);
  ASSERT_TRUE(taken.predicted.is_object() && taken.real.is_object());
  EXPECT_NEAR(taken.memory(), 1, 0.25)
      << taken.predicted["predicted_memory_bytes"] << " and " << taken.real["peak_rss_bytes"];
  EXPECT_NEAR(taken.file(), 1, 0.05) << taken.real["file_bytes"];
  EXPECT_GT(taken.predicted["predicted_seconds"].get<double>(), 0);
}

std::string flags(const std::string& words, int n_tokens, int vocabulary = kVocabulary) {
  return fmt::format("{} --tokens {}", words, tokens(n_tokens, vocabulary));
}

TEST(Prediction, OfAModelOfNoSize) {
  const std::string planted = std::string(SINKSCOPE_SOURCE_DIR) + "/sample_data/planted";
  expect_foretold(planted, flags("--record stats", 3, 60));
  expect_foretold(planted, flags("--record all,logits", 60, 60));
}

TEST(Prediction, OfADenseModel) {
  const std::string model = dense_model();
  expect_foretold(model, flags("--record stats", 40));
  expect_foretold(model, flags("--record stats", 1100));
  expect_foretold(model, flags("--record all", 300));
  expect_foretold(model, flags("--record maps --dtype bfloat16", 450));
  expect_foretold(model, flags("--record stats --kernel reference", 600));
  expect_foretold(model, flags("--record maps --reduce mean --reduce-over layers", 700));
}

// A block of 315 MB as bfloat16, in a file that is all holes.
std::string wide_model() {
  constexpr int kWide = 2048, kMlp = 24576;
  Json config = config_of("llama", 1);
  config["hidden_size"] = kWide;
  config["intermediate_size"] = kMlp;
  const std::string block = "model.layers.0.";
  Shapes shapes = {{"model.embed_tokens.weight", {kVocabulary, kWide}},
                   {"model.norm.weight", {kWide}},
                   {block + "mlp.gate_proj.weight", {kMlp, kWide}},
                   {block + "mlp.up_proj.weight", {kMlp, kWide}},
                   {block + "mlp.down_proj.weight", {kWide, kMlp}}};
  add_attention(shapes, block, kWide);
  return write_model(scratch_folder(), config, shapes, Values::holes);
}

// A narrower type is filled in pieces: of the largest matrix, 201 MB as float32, only 32 MB are
// float32 at a time.
TEST(Prediction, OfWideMatricesInHalfAsManyBytes) {
  expect_foretold(wide_model(), flags("--record stats --dtype bfloat16", 40));
}

TEST(Prediction, OfBlocksThatAreKeptBetweenGroups) {
  const std::string model = dense_model(), folder = scratch_folder();
  std::string prompts;
  for (int i = 0; i < 4; ++i)
    prompts += fmt::format("{{\"tokens\":[{}]}}\n", tokens(100, kVocabulary));
  const std::string words = "--prompts " + write_file(folder, "p.jsonl", prompts) +
                            " --record stats --activation-budget 1KiB --weight-budget ";
  expect_foretold(model, words + "1GiB");
  expect_foretold(model, words + "60MiB");
  // What is not kept is read again for every group, and the prediction says so.
  for (const char* budget : {"1GiB", "60MiB"}) {
    const Taken taken = take(model, words + budget);
    EXPECT_NEAR(taken.predicted["predicted_read_bytes"].get<double>() /
                    taken.real["bytes_read"].get<double>(),
                1, 0.1)
        << budget;
  }
}

TEST(Prediction, OfAMixtureOfExperts) {
  const std::string model = mixture_model();
  for (const int n_tokens : {3, 40, 500}) expect_foretold(model, flags("--record stats", n_tokens));
}

// Only chunks that hold keys inside the windows are written; an encoder's maps are whole.
TEST(Prediction, OfMapsWithWindows) {
  for (const char* family : {"mistral", "gemma3", "gpt_oss", "mimo_v2_flash"}) {
    SINKSCOPE_REQUIRE_SHARED(folder, std::string("oracles/") + family);
    expect_foretold(folder, flags("--record maps", 1024, 64));
  }
  SINKSCOPE_REQUIRE_SHARED(encoder, "oracles/bert");
  expect_foretold(encoder, flags("--record maps", 39, 64));
}

TEST(Prediction, OfARealModel) {
  SINKSCOPE_REQUIRE_DEMO_MODEL(model);
  expect_foretold(model, flags("--record stats", 64, 20000));
  expect_foretold(model, flags("--record maps", 256, 20000));
  expect_foretold(model, flags("--record maps --heads 3", 200, 20000));
}

}  // namespace
}  // namespace sinkscope::test
