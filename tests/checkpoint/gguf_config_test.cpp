// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/gguf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/checkpoint/gguf_tiny_model.h"

namespace sinkscope {
namespace {

using namespace test;  // NOLINT: the helpers of this folder
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(GgufConfig, Stories260K) {
  SINKSCOPE_REQUIRE_SHARED(path, kStories);
  const Described d = described(path);
  const ArchSpec& spec = d.model.spec;
  EXPECT_THAT(d.model.obstacles, IsEmpty());
  EXPECT_THAT(d.model.warnings, IsEmpty());
  EXPECT_EQ(spec.architecture, "llama");
  EXPECT_EQ(spec.name, "llama");
  EXPECT_EQ(spec.n_layers, 5);
  EXPECT_EQ(spec.n_heads, 8);
  EXPECT_EQ(spec.n_kv_heads, 4);
  EXPECT_EQ(spec.head_dim, 8);
  EXPECT_EQ(spec.d_model, 64);
  EXPECT_EQ(spec.d_mlp, 172);
  EXPECT_EQ(spec.vocab_size, 512);
  EXPECT_EQ(spec.n_ctx, 128);
  EXPECT_EQ(spec.norm_eps, 1e-5);  // not 9.999999747378752e-06
  EXPECT_EQ(spec.rope.theta, 10000.0);
  EXPECT_EQ(spec.rope.rotary_dim, 8);
  EXPECT_EQ(spec.rope.scaling, RopeScaling::none);
  EXPECT_EQ(spec.bos_id, 1);
  EXPECT_EQ(spec.eos_id, 2);
  EXPECT_FALSE(spec.tied);  // output.weight is there, though it equals the embedding
  EXPECT_THAT(spec.window, ElementsAre(0, 0, 0, 0, 0));
  EXPECT_EQ(d.tensor(Role::down, 4), "blk.4.ffn_down.weight");
  EXPECT_EQ(d.tensor(Role::unembed, kNoLayer), "output.weight");
  EXPECT_EQ(d.model.roles.find(Role::q_bias, 0), nullptr);
  EXPECT_EQ(d.model.roles.find(Role::q, 5), nullptr);
}

TEST(GgufConfig, WritersMayVaryIntegerTypesAndGiveOneValueALayer) {
  const Described d = TinyModel()
                          .key("block_count", std::uint8_t{2})
                          .key("embedding_length", std::int64_t{10})
                          .list<std::int32_t>("feed_forward_length", {14, 14})
                          .list<std::uint16_t>("attention.head_count", {6, 6})
                          .no_key("attention.value_length")
                          .describe();
  EXPECT_THAT(d.model.obstacles, IsEmpty());
  EXPECT_EQ(d.model.spec.d_mlp, 14);
  EXPECT_EQ(d.model.spec.n_heads, 6);
  EXPECT_EQ(d.model.spec.attention_scale, 0.5);
}

TEST(GgufConfig, LayersThatDifferAreAnObstacle) {
  const Described d = TinyModel().list<int>("attention.head_count_kv", {2, 3}).describe();
  EXPECT_THAT(d.model.obstacles, Contains(HasSubstr("llama.attention.head_count_kv")));
}

TEST(GgufConfig, ListsOfAnotherLengthAndNegativeSizesAreObstacles) {
  const auto obstacles = [](TinyModel model) { return model.describe().model.obstacles; };
  EXPECT_THAT(obstacles(TinyModel().list<int>("attention.head_count", {6})),
              Contains(HasSubstr("head_count\": a list of 1 entries for 2 layers")));
  EXPECT_THAT(obstacles(TinyModel().key("attention.layer_norm_rms_epsilon", -1.0f)),
              Contains(HasSubstr("layer_norm_rms_epsilon\": is -1, expected 0 to 1")));
  EXPECT_THAT(obstacles(TinyModel().key("attention.sliding_window", -4)),
              Contains(HasSubstr("sliding_window\": is -4")));
}

TEST(GgufConfig, AbsentKeysHaveTheirDefaults) {
  const Described d = TinyModel()
                          .no_key("attention.head_count_kv")
                          .no_key("attention.key_length")
                          .no_key("attention.value_length")
                          .key("attention.head_count", 5u)
                          .tensor("blk.0.attn_q.weight", {10, 10})
                          .tensor("blk.0.attn_k.weight", {10, 10})
                          .tensor("blk.0.attn_v.weight", {10, 10})
                          .tensor("blk.0.attn_output.weight", {10, 10})
                          .tensor("blk.1.attn_q.weight", {10, 10})
                          .tensor("blk.1.attn_k.weight", {10, 10})
                          .tensor("blk.1.attn_v.weight", {10, 10})
                          .tensor("blk.1.attn_output.weight", {10, 10})
                          .describe();
  EXPECT_THAT(d.model.obstacles, IsEmpty());
  EXPECT_EQ(d.model.spec.n_kv_heads, 5);
  EXPECT_EQ(d.model.spec.head_dim, 2);
  EXPECT_EQ(d.model.spec.rope.theta, 10000);
  EXPECT_EQ(d.model.spec.bos_id, -1);
  EXPECT_EQ(d.model.spec.name, "m");  // of the file
}

TEST(GgufConfig, MissingKeysAreNamed) {
  for (const char* key :
       {"block_count", "embedding_length", "feed_forward_length", "context_length",
        "attention.head_count", "attention.layer_norm_rms_epsilon"}) {
    const Described d = TinyModel().no_key(key).describe();
    EXPECT_THAT(d.model.obstacles, Contains(HasSubstr(key)));
  }
}

TEST(GgufConfig, NonsensicalSizesAreObstaclesAndNotBelieved) {
  const Described d = TinyModel()
                          .key("block_count", 4000000000u)
                          .key("attention.head_count", 0u)
                          .key("embedding_length", "ten")
                          .key("rope.freq_base", -1.0f)
                          .describe();
  EXPECT_EQ(d.model.spec.n_layers, 2);  // the tensors', to show their norms
  EXPECT_EQ(d.model.spec.n_heads, 0);
  EXPECT_THAT(d.model.obstacles, Contains(HasSubstr("llama.block_count")));
  EXPECT_THAT(d.model.obstacles, Contains(HasSubstr("llama.attention.head_count")));
  EXPECT_THAT(d.model.obstacles, Contains(HasSubstr("llama.embedding_length")));
  EXPECT_THAT(d.model.obstacles, Contains(HasSubstr("rope base")));
  const Described uneven = TinyModel().key("attention.head_count_kv", 4u).describe();
  EXPECT_THAT(uneven.model.obstacles, Contains(HasSubstr("6 heads cannot share 4")));
}

TEST(GgufConfig, RopeScalingIsRead) {
  const RopeSpec linear = TinyModel().key("rope.scale_linear", 4.0f).describe().model.spec.rope;
  EXPECT_EQ(linear.scaling, RopeScaling::linear);
  EXPECT_EQ(linear.factor, 4);
  const RopeSpec none = TinyModel()
                            .key("rope.scaling.type", "none")
                            .key("rope.scaling.factor", 4.0f)
                            .describe()
                            .model.spec.rope;
  EXPECT_EQ(none.scaling, RopeScaling::none);
  EXPECT_EQ(none.factor, 1);
  const Described d = TinyModel()
                          .key("rope.scaling.type", "yarn")
                          .key("rope.scaling.factor", 8.0f)
                          .key("rope.scaling.original_context_length", 16u)
                          .key("rope.scaling.yarn_beta_fast", 30.0f)
                          .key("rope.scaling.attn_factor", 0.5f)
                          .describe();
  const RopeSpec& yarn = d.model.spec.rope;
  EXPECT_THAT(d.model.obstacles, IsEmpty());
  EXPECT_EQ(yarn.scaling, RopeScaling::yarn);
  EXPECT_EQ(yarn.original_context, 16);
  EXPECT_EQ(yarn.beta_fast, 30);
  EXPECT_EQ(yarn.beta_slow, 1);
  EXPECT_DOUBLE_EQ(*yarn.attention_factor, 0.5 * (0.1 * std::log(8.0) + 1));
  const Described odd = TinyModel().key("rope.scaling.type", "longrope").describe();
  EXPECT_THAT(odd.model.obstacles, Contains(HasSubstr("longrope")));
}

TEST(GgufConfig, WindowsAreReadForLlama) {
  EXPECT_THAT(TinyModel().key("attention.sliding_window", 9u).describe().model.spec.window,
              ElementsAre(9, 9));
  EXPECT_THAT(TinyModel()
                  .key("attention.sliding_window", 9u)
                  .list<bool>("attention.sliding_window_pattern", {false, true})
                  .describe()
                  .model.spec.window,
              ElementsAre(0, 9));
  EXPECT_THAT(TinyModel()
                  .key("attention.sliding_window", 9u)
                  .key("attention.sliding_window_pattern", 2u)
                  .describe()
                  .model.spec.window,
              ElementsAre(9, 0));
  TinyModel qwen;
  qwen.architecture = "qwen3";
  for (const std::string block : {"blk.0.", "blk.1."}) {
    qwen.tensor(block + "attn_q_norm.weight", {4}).tensor(block + "attn_k_norm.weight", {4});
  }
  const Described d = qwen.key("attention.sliding_window", 9u).describe();
  EXPECT_THAT(d.model.obstacles, IsEmpty());
  EXPECT_THAT(d.model.spec.window, ElementsAre(0, 0));
  EXPECT_THAT(d.model.warnings, ElementsAre(HasSubstr("qwen3.attention.sliding_window")));
  EXPECT_EQ(d.model.spec.qk_norm, QkNorm::per_head);
  EXPECT_EQ(d.tensor(Role::k_norm, 1), "blk.1.attn_k_norm.weight");
  EXPECT_EQ(d.model.roles.find(Role::q, 1)->order, RowOrder::as_stored);
}

TEST(GgufConfig, VocabularySizesAreCompared) {
  const Described padded = [] {
    TinyModel tiny;
    tiny.bytes.list<std::string>("tokenizer.ggml.tokens", {"a", "b", "c", "d", "e"});
    tiny.bytes.key("tokenizer.ggml.bos_token_id", 0xFFFFFFFFu);
    tiny.bytes.key("tokenizer.ggml.eos_token_id", 9u);
    return tiny.key("vocab_size", 6u).describe();
  }();
  EXPECT_THAT(padded.model.obstacles, IsEmpty());
  EXPECT_EQ(padded.model.spec.vocab_size, 7);
  EXPECT_EQ(padded.model.spec.bos_id, -1);
  EXPECT_EQ(padded.model.spec.eos_id, -1);
  EXPECT_THAT(padded.model.warnings,
              ElementsAre(HasSubstr("7 rows and the token list 5 entries"),
                          HasSubstr("llama.vocab_size\" is 6"), HasSubstr("eos_token_id\": id 9")));
}

TEST(GgufConfig, ConfigTextIsJsonWithoutTheVocabulary) {
  SINKSCOPE_REQUIRE_SHARED(path, kStories);
  const std::string text = described(path).model.config_text;
  const auto config = nlohmann::ordered_json::parse(text);
  EXPECT_EQ(config.size(), 19u);
  EXPECT_EQ(config["tokenizer.ggml.tokens"], "512 entries");
  EXPECT_EQ(config["tokenizer.ggml.scores"], "512 entries");
  EXPECT_EQ(config["llama.block_count"], 5);
  EXPECT_LT(text.size(), 2000u);

  GgufBytes bytes;
  bytes.key("a", std::string("bad \xFF utf-8")).list<int>("b", {3, 1, 2}).key("c", true);
  const auto other = nlohmann::json::parse(described(written(bytes)).model.config_text);
  EXPECT_EQ(other["a"], "bad \uFFFD utf-8");
  EXPECT_EQ(other["b"], nlohmann::json({3, 1, 2}));
  EXPECT_EQ(other["c"], true);
}

}  // namespace
}  // namespace sinkscope
