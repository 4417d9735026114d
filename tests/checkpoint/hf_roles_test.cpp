// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/hf_roles.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capture/checkpoint/hf_names.h"
#include "capture/checkpoint/model_files.h"
#include "tests/checkpoint/gguf_test_files.h"
#include "tests/support/tiny_folder.h"

namespace sinkscope {
namespace {

using namespace test;  // NOLINT: the helpers of the tests
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Model = std::unique_ptr<ModelFiles>;

Model opened(const TinyFolder& tiny) { return open_model(tiny.write(scratch_folder())); }

TEST(HfRoles, EveryRoleOfEveryFamilyIsItsOwnTensor) {
  for (const char* family : {"llama", "mistral", "qwen2", "qwen3"}) {
    const TinyFolder tiny = tiny_folder(family);
    const Model model = opened(tiny);
    ASSERT_THAT(model->obstacles(), IsEmpty()) << family;
    EXPECT_THAT(model->warnings(), IsEmpty()) << family;
    std::size_t n_roles = 3;
    for (int layer = 0; layer < 2; ++layer) {
      for (const Role role : layer_roles(model->spec())) {
        const std::string name = "model." + hf_name(role, layer);
        EXPECT_EQ(model->tensor_name(role, layer), name);
        EXPECT_EQ(model->read_vector(role, layer), tiny.tensors.at(name).values) << name;
        ++n_roles;
      }
    }
    EXPECT_EQ(n_roles, tiny.tensors.size()) << family;
    EXPECT_EQ(model->read_vector(Role::unembed, kNoLayer),
              tiny.tensors.at("lm_head.weight").values);
    EXPECT_EQ(model->spec().rope.rotary_dim, 6);
    EXPECT_DOUBLE_EQ(model->spec().attention_scale, 1 / std::sqrt(6.0));
    EXPECT_EQ(model->rows(Role::q, 1), 24);
    EXPECT_EQ(model->cols(Role::q, 1), 8);
    EXPECT_EQ(model->cols(Role::o, 1), 24);
    EXPECT_FALSE(model->has(Role::rope_divisors, kNoLayer));
    EXPECT_EQ(model->has(Role::q_bias, 0), std::string(family) == "qwen2");
  }
}

TEST(HfRoles, ThePrefixIsOptional) {
  TinyFolder bare = tiny_folder();
  bare.tensors.clear();
  for (const auto& [name, tensor] : tiny_folder().tensors)
    bare.tensors[name.starts_with("model.") ? name.substr(6) : name] = tensor;
  const Model model = opened(bare);
  EXPECT_THAT(model->obstacles(), IsEmpty());
  EXPECT_EQ(model->tensor_name(Role::q, 1), "layers.1.self_attn.q_proj.weight");
}

TEST(HfRoles, MissingTensorsAreNamedOnceARole) {
  TinyFolder tiny = tiny_folder();
  for (int layer = 0; layer < 2; ++layer)
    tiny.remove(fmt::format("model.layers.{}.self_attn.k_proj.weight", layer));
  tiny.remove("model.norm.weight");
  const Model model = opened(tiny);
  EXPECT_THAT(model->obstacles(),
              ::testing::UnorderedElementsAre(
                  HasSubstr("missing tensor model.norm.weight"),
                  AllOf(HasSubstr("missing tensor model.layers.0.self_attn.k_proj.weight"),
                        HasSubstr("in 1 more layer"))));
  EXPECT_TRUE(model->has(Role::ln1, 1));  // the rest can still be inspected
  EXPECT_EQ(failure_of([&] { model->read_vector(Role::k, 1); }).first, ErrorKind::not_found);
  EXPECT_THAT(failure_of([&] { model->rows(Role::k, 1); }).second, HasSubstr("no k of blocks.1"));
}

TEST(HfRoles, UnexpectedTensorsAreListedIgnoredOnesAreNot) {
  TinyFolder tiny = tiny_folder();
  tiny.add("model.layers.0.self_attn.rotary_emb.inv_freq", {3}).add("mtp.0.weight", {2});
  tiny.add("model.layers.0.self_attn.q_proj.bias", {24}).add("score.weight", {2, 8});
  EXPECT_THAT(opened(tiny)->obstacles(),
              ElementsAre(AllOf(HasSubstr("2 unexpected tensors"), HasSubstr("q_proj.bias"),
                                HasSubstr("score.weight"), Not(HasSubstr("inv_freq")))));
  TinyFolder scaled = tiny_folder();
  scaled.add("model.layers.0.self_attn.q_proj.input_scale", {});
  EXPECT_THAT(opened(scaled)->obstacles(), IsEmpty());
  EXPECT_THAT(opened(scaled)->warnings(), ElementsAre(HasSubstr("input_scale")));
}

TEST(HfRoles, ConfigAgainstTensorsNamesBothNumbers) {
  TinyFolder hidden = tiny_folder();
  hidden.config["hidden_size"] = 12;
  EXPECT_THAT(opened(hidden)->obstacles(),
              Contains(AllOf(HasSubstr("model.embed_tokens.weight has shape [32, 8]"),
                             HasSubstr("expected [32, 12] (vocab_size 32, hidden_size 12)"))));
  TinyFolder layers = tiny_folder();
  layers.config["num_hidden_layers"] = 3;
  EXPECT_THAT(opened(layers)->obstacles(),
              ElementsAre("config.json says num_hidden_layers 3, the files hold 2 layers"));
  layers.config["num_hidden_layers"] = 1;
  EXPECT_THAT(opened(layers)->obstacles(),
              ElementsAre("config.json says num_hidden_layers 1, the files hold 2 layers"));
  TinyFolder heads = tiny_folder();
  heads.config["num_key_value_heads"] = 3;
  EXPECT_THAT(opened(heads)->obstacles(),
              Contains("num_attention_heads 4 is not a multiple of num_key_value_heads 3"));
  TinyFolder ids = tiny_folder();
  ids.config["bos_token_id"] = 32;
  EXPECT_THAT(opened(ids)->warnings(), ElementsAre(HasSubstr("bos_token_id 32 is outside")));
  EXPECT_EQ(opened(ids)->spec().bos_id, -1);
}

TEST(HfRoles, AbsentKvHeadsFollowFromTheRows) {
  TinyFolder tiny = tiny_folder();
  tiny.config.erase("num_key_value_heads");
  const Model model = opened(tiny);
  EXPECT_THAT(model->obstacles(), IsEmpty());
  EXPECT_EQ(model->spec().n_kv_heads, 2);
  EXPECT_THAT(model->warnings(), ElementsAre(HasSubstr("12 rows make it 2")));
}

TEST(FieldCases, FC05_EmbeddingAloneServesAsHead) {
  TinyFolder tiny = tiny_folder();
  tiny.remove("lm_head.weight").config["tie_word_embeddings"] = true;
  const Model model = opened(tiny);
  EXPECT_THAT(model->obstacles(), IsEmpty());
  EXPECT_THAT(model->warnings(), IsEmpty());
  EXPECT_TRUE(model->spec().tied);
  EXPECT_EQ(model->tensor_name(Role::unembed, kNoLayer), "model.embed_tokens.weight");
}

TEST(FieldCases, FC05_HeadAloneServesAsEmbedding) {
  TinyFolder tiny = tiny_folder();
  tiny.remove("model.embed_tokens.weight").config["tie_word_embeddings"] = true;
  const Model model = opened(tiny);
  EXPECT_THAT(model->obstacles(), IsEmpty());
  EXPECT_TRUE(model->spec().tied);
  EXPECT_EQ(model->tensor_name(Role::embed, kNoLayer), "lm_head.weight");
  tiny.config["tie_word_embeddings"] = false;
  EXPECT_THAT(opened(tiny)->obstacles(),
              ElementsAre(HasSubstr("missing tensor model.embed_tokens.weight")));
}

TEST(FieldCases, FC05_UntiedWithoutHeadHasNoHeadAndSaysSo) {
  TinyFolder tiny = tiny_folder();
  tiny.remove("lm_head.weight");
  for (const bool said : {true, false}) {
    if (!said) tiny.config.erase("tie_word_embeddings");  // the family's default: not tied
    const Model model = opened(tiny);
    EXPECT_THAT(model->obstacles(), IsEmpty());
    EXPECT_THAT(model->warnings(), ElementsAre(HasSubstr("the model has no head")));
    EXPECT_FALSE(model->spec().has_head);
    EXPECT_FALSE(model->spec().tied);
    EXPECT_FALSE(model->has(Role::unembed, kNoLayer));
  }
}

TEST(FieldCases, FC05_BothPresentAndTheFlagTrue) {
  TinyFolder tiny = tiny_folder();
  tiny.config["tie_word_embeddings"] = true;
  const Model different = opened(tiny);
  EXPECT_FALSE(different->spec().tied);
  EXPECT_EQ(different->tensor_name(Role::unembed, kNoLayer), "lm_head.weight");
  EXPECT_THAT(different->warnings(), ElementsAre(HasSubstr("the file's head is used")));
  tiny.tensors["lm_head.weight"].values = tiny.tensors["model.embed_tokens.weight"].values;
  const Model equal = opened(tiny);
  EXPECT_TRUE(equal->spec().tied);
  EXPECT_THAT(equal->warnings(), IsEmpty());
  // One value in the last row is a difference.
  tiny.tensors["lm_head.weight"].values.back() += 1.0f;
  EXPECT_FALSE(opened(tiny)->spec().tied);
}

TEST(FieldCases, FC10_HeadDimIsNotHiddenOverHeads) {
  TinyFolder tiny = tiny_folder();
  EXPECT_EQ(opened(tiny)->spec().head_dim, 6);  // explicit: 6, hidden / heads = 2
  tiny.config.erase("head_dim");
  const Model inferred = opened(tiny);
  EXPECT_THAT(inferred->obstacles(), IsEmpty());
  EXPECT_EQ(inferred->spec().head_dim, 6);
  EXPECT_THAT(inferred->warnings(),
              ElementsAre(AllOf(HasSubstr("head_dim 6 is used"), HasSubstr("= 2"))));
  tiny.config["head_dim"] = 4;
  EXPECT_THAT(opened(tiny)->obstacles(),
              Contains(AllOf(HasSubstr("q_proj.weight has shape [24, 8], expected [16, 8]"),
                             HasSubstr("num_attention_heads 4 x head_dim 4"))));
  tiny.config.erase("head_dim");
  tiny.config["num_attention_heads"] = 5;  // 24 rows are no whole heads
  EXPECT_THAT(opened(tiny)->obstacles(), Not(IsEmpty()));
}

TEST(FieldCases, FC12_TheRoleNamesThePlaceNotTheFilesWord) {
  const Model llama = opened(tiny_folder());
  EXPECT_EQ(llama->tensor_name(Role::ln2, 1), "model.layers.1.post_attention_layernorm.weight");
  EXPECT_FALSE(llama->has(Role::ln1_post, 1));

  TinyFolder gemma = tiny_folder("gemma2");
  for (int layer = 0; layer < 2; ++layer) {
    gemma.add(fmt::format("model.layers.{}.pre_feedforward_layernorm.weight", layer), {8});
    gemma.add(fmt::format("model.layers.{}.post_feedforward_layernorm.weight", layer), {8});
  }
  const Model model = opened(gemma);
  EXPECT_THAT(model->obstacles(), IsEmpty());
  EXPECT_EQ(model->tensor_name(Role::ln1, 0), "model.layers.0.input_layernorm.weight");
  EXPECT_EQ(model->tensor_name(Role::ln1_post, 0),
            "model.layers.0.post_attention_layernorm.weight");
  EXPECT_EQ(model->tensor_name(Role::ln2, 0), "model.layers.0.pre_feedforward_layernorm.weight");
  EXPECT_EQ(model->tensor_name(Role::ln2_post, 0),
            "model.layers.0.post_feedforward_layernorm.weight");
  EXPECT_EQ(model->tensor_name(Role::ln_final, kNoLayer), "model.norm.weight");
  // This family multiplies by 1 + w.
  const NormGain gain = model->norm_gain(Role::ln2, 1);
  EXPECT_EQ(gain.raw, gemma.tensors.at("model.layers.1.pre_feedforward_layernorm.weight").values);
  for (std::size_t i = 0; i < gain.raw.size(); ++i)
    EXPECT_EQ(gain.effective[i], gain.raw[i] + 1.0f);
}

// A language model inside a model for pictures: its keys in text_config, its tensors behind a
// prefix, towers beside it.
TEST(HfRoles, WrappedModelsOpenWithoutTheirTowers) {
  for (const char* prefix : {"model.language_model.", "language_model.model."}) {
    const TinyFolder inner = tiny_folder("qwen3");
    TinyFolder wrapped = inner;
    wrapped.config = {{"model_type", "some_vl"}, {"text_config", inner.config}};
    wrapped.tensors.clear();
    for (const auto& [name, tensor] : inner.tensors)
      wrapped.tensors[name.starts_with("model.") ? prefix + name.substr(6) : name] = tensor;
    wrapped.add("model.visual.layers.7.input_layernorm.weight", {5});
    const Model model = opened(wrapped);
    ASSERT_THAT(model->obstacles(), IsEmpty()) << prefix;
    EXPECT_EQ(model->spec().architecture, "qwen3");
    EXPECT_EQ(model->spec().n_layers, 2);
    EXPECT_EQ(model->read_vector(Role::q, 1),
              inner.tensors.at("model.layers.1.self_attn.q_proj.weight").values);
    wrapped.add(std::string(prefix) + "layers.0.surprise.weight", {2});
    EXPECT_THAT(opened(wrapped)->obstacles(), ElementsAre(HasSubstr("surprise")));
  }
}

TEST(HfRoles, NormsOfUnknownFamiliesAreFoundBehindAnyPrefix) {
  TinyFolder wrapped = tiny_folder("brand_new");
  wrapped.tensors.clear();
  for (const auto& [name, tensor] : tiny_folder().tensors)
    wrapped.tensors["language_model." + name] = tensor;
  wrapped.add("vision_tower.encoder.deep.layers.0.input_layernorm.weight", {5});
  wrapped.config.erase("num_hidden_layers");
  wrapped.config.erase("hidden_size");
  const Model model = opened(wrapped);
  EXPECT_EQ(model->spec().n_layers, 2);
  EXPECT_EQ(model->spec().d_model, 8);
  EXPECT_EQ(model->tensor_name(Role::ln2, 1),
            "language_model.model.layers.1.post_attention_layernorm.weight");
  EXPECT_EQ(model->tensor_name(Role::ln_final, kNoLayer), "language_model.model.norm.weight");
  // So are the matrices of a Llama's names; what is open is named.
  EXPECT_EQ(model->tensor_name(Role::down, 1),
            "language_model.model.layers.1.mlp.down_proj.weight");
  EXPECT_EQ(model->tensor_name(Role::unembed, kNoLayer), "language_model.lm_head.weight");
  EXPECT_THAT(model->obstacles(),
              Contains(HasSubstr("1 of 22 tensors have no role: vision_tower.")));
}

}  // namespace
}  // namespace sinkscope
