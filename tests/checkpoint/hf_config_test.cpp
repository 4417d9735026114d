// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/hf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/checkpoint/gguf_test_files.h"
#include "tests/support/tiny_folder.h"

namespace sinkscope {
namespace {

using namespace test;  // NOLINT: the helpers of the tests
using nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

HfConfig parsed(const json& config) { return parse_hf_config(config.dump(), "config.json"); }

// The tiny model's config with some keys replaced; null removes a key.
HfConfig with(const std::string& family, const json& changes = json::object()) {
  json config = tiny_folder(family).config;
  config.merge_patch(changes);
  return parsed(config);
}

TEST(HfConfig, SizesAndIds) {
  const HfConfig config = with("llama");
  EXPECT_THAT(config.obstacles, IsEmpty());
  EXPECT_THAT(config.warnings, IsEmpty());
  const ArchSpec& spec = config.spec;
  EXPECT_EQ(spec.architecture, "llama");
  EXPECT_EQ(spec.n_layers, 2);
  EXPECT_EQ(spec.n_heads, 4);
  EXPECT_EQ(spec.n_kv_heads, 2);
  EXPECT_EQ(spec.head_dim, 6);
  EXPECT_EQ(spec.d_model, 8);
  EXPECT_EQ(spec.d_mlp, 10);
  EXPECT_EQ(spec.vocab_size, 32);
  EXPECT_EQ(spec.n_ctx, 64);
  EXPECT_EQ(spec.norm_eps, 0.003);
  EXPECT_EQ(spec.rope.theta, 500.0);
  EXPECT_EQ(spec.bos_id, 1);
  EXPECT_EQ(spec.eos_id, 2);
  EXPECT_EQ(config.tied, false);
}

TEST(HfConfig, AbsentKeysTakeTheFamilysDefaults) {
  const ArchSpec llama = parsed({{"model_type", "llama"}}).spec;
  EXPECT_EQ(llama.n_layers, 32);
  EXPECT_EQ(llama.d_mlp, 11008);
  EXPECT_EQ(llama.n_ctx, 2048);
  EXPECT_EQ(llama.norm_eps, 1e-6);
  EXPECT_EQ(llama.rope.theta, 10000.0);
  EXPECT_EQ(llama.bos_id, 1);
  const ArchSpec mistral = parsed({{"model_type", "mistral"}}).spec;
  EXPECT_EQ(mistral.d_mlp, 14336);
  EXPECT_THAT(mistral.window, ::testing::Each(4096));
  const ArchSpec qwen2 = parsed({{"model_type", "qwen2"}}).spec;
  EXPECT_EQ(qwen2.vocab_size, 151936);
  EXPECT_TRUE(qwen2.qkv_bias);
  EXPECT_FALSE(qwen2.o_bias);
  EXPECT_EQ(qwen2.bos_id, -1);
  EXPECT_THAT(qwen2.window, ::testing::Each(0));
  EXPECT_EQ(parsed({{"model_type", "qwen3"}}).spec.qk_norm, QkNorm::per_head);
}

TEST(HfConfig, OldAndNewSpellingOfRopeAgree) {
  const json scaling = {{"rope_type", "llama3"},
                        {"factor", 8.0},
                        {"low_freq_factor", 1.5},
                        {"high_freq_factor", 3.5},
                        {"original_max_position_embeddings", 16}};
  json modern = scaling;
  modern["rope_theta"] = 700.0;
  json old = scaling;
  old["type"] = old["rope_type"];
  old.erase("rope_type");
  const RopeSpec a = with("llama", {{"rope_parameters", modern}}).spec.rope;
  const RopeSpec b =
      with("llama", {{"rope_parameters", nullptr}, {"rope_theta", 700.0}, {"rope_scaling", old}})
          .spec.rope;
  EXPECT_EQ(a, b);
  EXPECT_EQ(a.theta, 700.0);
  EXPECT_EQ(a.scaling, RopeScaling::llama3);
  EXPECT_EQ(a.factor, 8.0);
  EXPECT_EQ(a.low_freq_factor, 1.5);
  EXPECT_EQ(a.high_freq_factor, 3.5);
  EXPECT_EQ(a.original_context, 16);
}

TEST(HfConfig, EveryKindOfRopeScaling) {
  const auto rope = [](const json& scaling) {
    return with("llama", {{"rope_parameters", nullptr}, {"rope_scaling", scaling}});
  };
  EXPECT_EQ(rope(nullptr).spec.rope.scaling, RopeScaling::none);
  EXPECT_EQ(rope({{"rope_type", "default"}}).spec.rope.scaling, RopeScaling::none);
  const RopeSpec linear = rope({{"type", "linear"}, {"factor", 4}}).spec.rope;
  EXPECT_EQ(linear.scaling, RopeScaling::linear);
  EXPECT_EQ(linear.factor, 4.0);
  EXPECT_EQ(rope({{"type", "dynamic"}, {"factor", 2.0}}).spec.rope.scaling, RopeScaling::dynamic);
  const RopeSpec yarn = rope({{"type", "yarn"},
                              {"factor", 4.0},
                              {"beta_fast", 30},
                              {"beta_slow", 2},
                              {"truncate", false},
                              {"attention_factor", 1.25},
                              {"mscale", 0.7},
                              {"mscale_all_dim", 0.8},
                              {"original_max_position_embeddings", 16}})
                            .spec.rope;
  EXPECT_EQ(yarn.scaling, RopeScaling::yarn);
  EXPECT_EQ(yarn.beta_fast, 30.0);
  EXPECT_EQ(yarn.beta_slow, 2.0);
  EXPECT_FALSE(yarn.truncate);
  EXPECT_EQ(yarn.attention_factor, 1.25);
  EXPECT_EQ(yarn.mscale, 0.7);
  EXPECT_EQ(yarn.mscale_all_dim, 0.8);
  EXPECT_EQ(yarn.original_context, 16);
  // Without a factor yarn takes the ratio of the contexts; the others cannot.
  EXPECT_EQ(rope({{"type", "yarn"}, {"original_max_position_embeddings", 16}}).spec.rope.factor,
            4.0);
  EXPECT_THAT(rope({{"type", "linear"}}).obstacles, ElementsAre(HasSubstr("without a factor")));
  EXPECT_THAT(rope({{"type", "ntk-by-hand"}, {"factor", 2}}).obstacles,
              ElementsAre(HasSubstr("rope scaling \"ntk-by-hand\" is not supported")));
  const json lists = {{"type", "longrope"},
                      {"short_factor", {1.0, 1.5, 2.0}},
                      {"long_factor", {2.0, 3.0, 4.0}},
                      {"original_max_position_embeddings", 16}};
  const RopeSpec longrope = rope(lists).spec.rope;
  EXPECT_EQ(longrope.scaling, RopeScaling::longrope);
  EXPECT_EQ(longrope.factor, 4.0);  // 64 positions, trained with 16
  EXPECT_THAT(longrope.long_factor, ElementsAre(2, 3, 4));
  EXPECT_THAT(rope({{"type", "longrope"}, {"factor", 2}}).obstacles,
              ElementsAre(HasSubstr("not lists of one length")));
  EXPECT_THAT(rope({{"full_attention", {{"rope_type", "default"}}}}).obstacles,
              ElementsAre(HasSubstr("per layer type (full_attention)")));
}

TEST(HfConfig, MistralWindowsEveryLayer) {
  EXPECT_THAT(with("mistral", {{"sliding_window", 7}}).spec.window, ElementsAre(7, 7));
  EXPECT_THAT(with("mistral").spec.window, ElementsAre(0, 0));             // null, as v0.2 says it
  EXPECT_THAT(with("mistral", {{"sliding_window", nullptr}}).spec.window,  // removed
              ElementsAre(4096, 4096));
}

TEST(HfConfig, QwenWindowsFromALayerOnWhenSwitchedOn) {
  const json off = {{"sliding_window", 8}, {"max_window_layers", 1}, {"use_sliding_window", false}};
  json on = off;
  on["use_sliding_window"] = true;
  for (const char* family : {"qwen2", "qwen3"}) {
    EXPECT_THAT(with(family, off).spec.window, ElementsAre(0, 0));
    EXPECT_THAT(with(family, on).spec.window, ElementsAre(0, 8));
  }
  EXPECT_THAT(with("llama", {{"sliding_window", 8}}).spec.window, ElementsAre(0, 0));
}

TEST(HfConfig, LayerTypesWin) {
  const json types = {"sliding_attention", "full_attention"};
  const json changes = {{"layer_types", types}, {"sliding_window", 5}, {"max_window_layers", 1}};
  EXPECT_THAT(with("qwen3", changes).spec.window, ElementsAre(5, 0));
  json none = tiny_folder("qwen3").config;
  none["layer_types"] = types;
  EXPECT_THAT(parsed(none).obstacles, ElementsAre(HasSubstr("sliding_window is absent")));
  EXPECT_THAT(with("qwen3", {{"layer_types", {"full_attention"}}}).obstacles,
              ElementsAre(HasSubstr("names 1 layers, num_hidden_layers is 2")));
  EXPECT_THAT(with("qwen3", {{"layer_types", {"linear_attention", "full_attention"}}}).obstacles,
              ElementsAre(HasSubstr("\"linear_attention\" is not supported")));
}

TEST(HfConfig, Biases) {
  const ArchSpec llama = with("llama", {{"attention_bias", true}, {"mlp_bias", true}}).spec;
  EXPECT_TRUE(llama.qkv_bias && llama.o_bias && llama.mlp_bias);
  const ArchSpec qwen3 = with("qwen3", {{"attention_bias", true}}).spec;
  EXPECT_TRUE(qwen3.qkv_bias && qwen3.o_bias && !qwen3.mlp_bias);
  EXPECT_FALSE(with("mistral", {{"attention_bias", true}}).spec.qkv_bias);  // has no such key
}

// Gemma 4: full layers have heads of their own, by layer in new files and for all of them in old.
TEST(HfConfig, Gemma4SaysTheHeadsOfItsFullLayersInTwoWays) {
  const json rope = {
      {"full_attention",
       {{"rope_type", "proportional"}, {"rope_theta", 20000.0}, {"partial_rotary_factor", 0.25}}},
      {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 500.0}}}};
  const json common = {{"layer_types", {"sliding_attention", "full_attention"}},
                       {"sliding_window", 6},
                       {"rope_parameters", rope},
                       {"attention_k_eq_v", true},
                       {"hidden_size_per_layer_input", 3}};
  json by_layer = common, for_all = common;
  by_layer["per_layer_config"] = {{"1", {{"head_dim", 16}, {"num_key_value_heads", 1}}}};
  for_all["global_head_dim"] = 16;
  for_all["num_global_key_value_heads"] = 1;
  const HfConfig config = with("gemma4_text", by_layer);
  EXPECT_THAT(config.obstacles, IsEmpty());
  const ArchSpec& spec = config.spec;
  EXPECT_EQ(spec, with("gemma4_text", for_all).spec);
  EXPECT_THAT(spec.layer_head_dims, ElementsAre(6, 16));
  EXPECT_THAT(spec.layer_kv_heads, ElementsAre(2, 1));
  EXPECT_THAT(spec.keys_as_values, ElementsAre(false, true));
  EXPECT_THAT(spec.kv_source, IsEmpty());
  EXPECT_EQ(spec.d_per_layer, 3);
  EXPECT_EQ(spec.layer_ropes.at(1).scaling, RopeScaling::proportional);
  EXPECT_EQ(spec.scale_of(1), 1);
  json shared = by_layer;
  shared["num_kv_shared_layers"] = 1;
  EXPECT_THAT(with("gemma4_text", shared).obstacles, ElementsAre(HasSubstr("without keys")));
}

// Two spellings of one thing: sizes and kinds of layers flat, or under linear_attn_config.
TEST(HfConfig, KimiSaysItsLinearAttentionFlatOrNested) {
  const json sizes = {{"num_hidden_layers", 4}, {"kv_lora_rank", 8}, {"qk_nope_head_dim", 6},
                      {"qk_rope_head_dim", 4},  {"v_head_dim", 6},   {"n_shared_experts", 1}};
  json flat = sizes, nested = sizes;
  flat.update({{"linear_num_heads", 3},
               {"linear_head_dim", 10},
               {"linear_conv_kernel_dim", 4},
               {"layer_types",
                {"linear_attention", "linear_attention", "full_attention", "linear_attention"}}});
  nested["linear_attn_config"] = {{"kda_layers", {1, 2, 4}},
                                  {"full_attn_layers", {3}},
                                  {"head_dim", 10},
                                  {"num_heads", 3},
                                  {"short_conv_kernel_size", 4}};
  const ArchSpec a = with("kimi_linear", flat).spec, b = with("kimi_linear", nested).spec;
  EXPECT_EQ(b.delta.n_key_heads, 3);
  EXPECT_EQ(b.delta.key_dim, 10);
  EXPECT_EQ(b.delta.n_taps, 4);
  EXPECT_EQ(a.mixers, b.mixers);
  EXPECT_EQ(b.mixers,
            (std::vector<Mixer>{Mixer::delta, Mixer::delta, Mixer::latent, Mixer::delta}));
}

TEST(HfConfig, MimosFilesSayHowFarBackAWindowGoes) {
  const json types = {{"num_hidden_layers", 2},
                      {"layer_types", {"full_attention", "sliding_attention"}}};
  json reach = types, width = types;
  reach["sliding_window_size"] = 127;
  width["sliding_window"] = 128;
  EXPECT_THAT(with("mimo_v2_flash", reach).spec.window, ElementsAre(0, 128));
  EXPECT_THAT(with("mimo_v2_flash", width).spec.window, ElementsAre(0, 128));
}

TEST(HfConfig, WhatCannotBeRunIsAnObstacleNotAnError) {
  EXPECT_THAT(with("rwkv").obstacles,
              ElementsAre(HasSubstr("architecture \"rwkv\" is not known here; a file for --arch")));
  EXPECT_THAT(parsed(json::object()).obstacles, ElementsAre(HasSubstr("no model_type")));
  EXPECT_THAT(with("llama", {{"hidden_act", "mish"}}).obstacles,
              ElementsAre("activation \"mish\" is not supported"));
  EXPECT_THAT(with("gemma2", {{"num_attention_heads", nullptr}}).obstacles,
              ElementsAre("config.json has no num_attention_heads"));
  const HfConfig wrapper = parsed(
      {{"model_type", "llava"}, {"text_config", {{"model_type", "rwkv"}, {"hidden_size", 24}}}});
  EXPECT_THAT(wrapper.obstacles, ElementsAre(HasSubstr("\"llava\" wraps a language model")));
  EXPECT_EQ(wrapper.spec.d_model, 24);
  EXPECT_EQ(parsed({{"model_type", "gpt2"}, {"n_embd", 12}, {"n_layer", 3}}).spec.d_model, 12);
}

TEST(HfConfig, ActivationsUnderTheirManyNames) {
  const auto activation = [](const char* family, const json& changes) {
    return with(family, changes).spec.activation;
  };
  EXPECT_EQ(activation("llama", {{"hidden_act", "gelu"}}), Activation::gelu);
  EXPECT_EQ(activation("gemma2", json::object()), Activation::gelu_tanh);
  EXPECT_EQ(activation("gpt2", {{"activation_function", "relu"}}), Activation::relu);
  EXPECT_EQ(activation("gpt2", json::object()), Activation::gelu_tanh);
  EXPECT_EQ(activation("gpt_neox", json::object()), Activation::gelu);
}

// Gemma 3: windowed layers turn with a base of their own, whichever way config.json says it.
TEST(HfConfig, RotaryPositionsByLayerType) {
  const json old = {
      {"sliding_window", 5},          {"sliding_window_pattern", 2},
      {"rope_parameters", nullptr},   {"rope_theta", 700.0},
      {"rope_local_base_freq", 30.0}, {"rope_scaling", {{"rope_type", "linear"}, {"factor", 8.0}}}};
  const json modern = {
      {"sliding_window", 5},
      {"layer_types", {"sliding_attention", "full_attention"}},
      {"rope_parameters",
       {{"full_attention", {{"rope_type", "linear"}, {"factor", 8.0}, {"rope_theta", 700.0}}},
        {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 30.0}}}}}};
  for (const json& spelling : {old, modern}) {
    const HfConfig config = with("gemma3_text", spelling);
    ASSERT_THAT(config.obstacles, IsEmpty());
    EXPECT_THAT(config.spec.window, ElementsAre(5, 0));
    EXPECT_EQ(config.spec.rope_of(0).theta, 30);
    EXPECT_EQ(config.spec.rope_of(0).scaling, RopeScaling::none);
    EXPECT_EQ(config.spec.rope_of(1).theta, 700);
    EXPECT_EQ(config.spec.rope_of(1).factor, 8);
  }
}

// Which blocks have experts: Qwen's step and list, DeepSeek's first dense ones.
TEST(HfConfig, BlocksWithExperts) {
  const json sizes = {{"num_hidden_layers", 5},
                      {"num_experts", 4},
                      {"n_routed_experts", 4},
                      {"num_experts_per_tok", 2},
                      {"moe_intermediate_size", 6}};
  json qwen = sizes, deepseek = sizes;
  qwen["decoder_sparse_step"] = 2;
  qwen["mlp_only_layers"] = {3};
  EXPECT_THAT(with("qwen3_moe", qwen).spec.moe_layers, ElementsAre(0, 1, 0, 0, 0));
  EXPECT_FALSE(with("qwen3_moe", qwen).spec.moe.renormalize);  // transformers' default
  deepseek["first_k_dense_replace"] = 2;
  EXPECT_THAT(with("deepseek_v3", deepseek).spec.moe_layers, ElementsAre(0, 0, 1, 1, 1));
  json none = qwen;
  none["moe_intermediate_size"] = nullptr;
  EXPECT_THAT(with("qwen3_moe", none).obstacles, ElementsAre(HasSubstr("how wide they are")));
  json many = qwen;
  many["num_experts_per_tok"] = 5;
  EXPECT_THAT(with("qwen3_moe", many).obstacles, ElementsAre(HasSubstr("more experts than exist")));
}

TEST(HfConfig, ValuesOfAnImpossibleTypeOrSizeAreCorrupt) {
  const json bad[] = {{{"hidden_size", "8"}},
                      {{"hidden_size", -8}},
                      {{"hidden_size", 8.5}},
                      {{"hidden_size", 1e18}},
                      {{"num_hidden_layers", 0}},
                      {{"num_hidden_layers", 1025}},
                      {{"num_attention_heads", 0}},
                      {{"rms_norm_eps", "small"}},
                      {{"rope_parameters", 3}},
                      {{"layer_types", "full_attention"}},
                      {{"head_dim", 0}},
                      {{"vocab_size", 18446744073709551615ull}}};
  for (const json& change : bad) {
    const auto [kind, message] = failure_of([&] { with("llama", change); });
    EXPECT_EQ(kind, ErrorKind::corrupt) << change;
    EXPECT_THAT(message, HasSubstr("config.json: " + change.begin().key() + " is ")) << change;
  }
  const std::string texts[] = {"{", "[]", "3", std::string(5000, '[')};
  for (const std::string& text : texts)
    EXPECT_EQ(failure_of([&] { parse_hf_config(text, "c"); }).first, ErrorKind::corrupt);
  EXPECT_EQ(with("llama", {{"hidden_size", 24.0}}).spec.d_model, 24);  // some writers do that
}

TEST(HfConfig, NormsThatAddOneAreKnownByFamily) {
  EXPECT_EQ(with("gemma2").spec.norm_offset, 1.0);
  EXPECT_EQ(with("qwen3").spec.norm_offset, 0.0);
  EXPECT_THAT(with("unheard_of").warnings, Contains(HasSubstr("shown as stored")));
}

TEST(HfConfig, QuantizationConfig) {
  EXPECT_EQ(with("llama").quantization.method, "");
  const json fp8 = {{"quant_method", "fp8"}, {"weight_block_size", {128, 64}}};
  const QuantizationHint hint = with("llama", {{"quantization_config", fp8}}).quantization;
  EXPECT_EQ(hint.method, "fp8");
  EXPECT_THAT(hint.block, ElementsAre(128, 64));
  EXPECT_THAT(with("llama", {{"quantization_config", {{"quant_method", "gptq"}}}}).obstacles,
              ElementsAre("weights quantized by gptq are not supported"));
  const json bad = {{"quant_method", "fp8"}, {"weight_block_size", {128, -1}}};
  EXPECT_EQ(failure_of([&] {
              with("llama", {{"quantization_config", bad}});
            }).first,
            ErrorKind::corrupt);
}

TEST(HfConfig, NumbersBeyondBeliefAreObstacles) {
  for (const double eps : {-1e-6, 1.5, 1e300})
    EXPECT_THAT(with("llama", {{"rms_norm_eps", eps}}).obstacles, Contains(HasSubstr("epsilon is")))
        << eps;
  for (const double theta : {1e-300, 0.0, -1.0, 1e300})
    EXPECT_THAT(with("llama", {{"rope_parameters", nullptr}, {"rope_theta", theta}}).obstacles,
                Contains(HasSubstr("rope_theta is")))
        << theta;
  EXPECT_THAT(with("llama", {{"rms_norm_eps", 1e-5}}).obstacles, IsEmpty());
}

TEST(HfConfig, AMessageNamesNoLibrary) {
  const auto [kind, message] =
      failure_of([] { parse_hf_config(R"({"rms_norm_eps": 1e999})", "config.json"); });
  EXPECT_EQ(kind, ErrorKind::corrupt);
  EXPECT_THAT(message, HasSubstr("config.json: not JSON: number overflow"));
  EXPECT_EQ(message.find("json.exception"), std::string::npos);
}

TEST(HfConfig, GenerationConfigFillsInWhatConfigLacks) {
  const std::string generation = R"({"bos_token_id": 7, "eos_token_id": [9, 10]})";
  HfConfig silent = with("llama", {{"bos_token_id", nullptr}, {"eos_token_id", nullptr}});
  EXPECT_EQ(silent.spec.bos_id, 1);  // the family's default
  add_generation_config(silent, generation, "generation_config.json");
  EXPECT_EQ(silent.spec.bos_id, 7);
  EXPECT_EQ(silent.spec.eos_id, 9);
  HfConfig said = with("llama", {{"eos_token_id", {3, 4}}});
  add_generation_config(said, generation, "generation_config.json");
  EXPECT_EQ(said.spec.bos_id, 1);
  EXPECT_EQ(said.spec.eos_id, 3);
  json none = tiny_folder().config;
  none["bos_token_id"] = nullptr;
  EXPECT_EQ(parsed(none).spec.bos_id, -1);
}

// The family's default is for sizes that a config leaves out, not for those it says are nothing.
TEST(HfConfig, ASizeThatIsNullIsRefusedByName) {
  for (const char* name :
       {"num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size"}) {
    const auto [kind, said] = failure_of([&] {
      parsed({{"model_type", "llama"}, {name, nullptr}});
    });
    EXPECT_EQ(kind, ErrorKind::corrupt);
    EXPECT_THAT(said, HasSubstr(std::string("config.json: ") + name + " is null"));
  }
  EXPECT_NO_THROW(parsed({{"model_type", "llama"}, {"head_dim", nullptr}}));
}

}  // namespace
}  // namespace sinkscope
