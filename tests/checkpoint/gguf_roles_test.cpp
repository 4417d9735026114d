// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/gguf_roles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capture/checkpoint/model_files.h"
#include "tests/checkpoint/gguf_tiny_model.h"

namespace sinkscope {
namespace {

using namespace test;  // NOLINT: the helpers of this folder
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(FieldCases, FC14_LlamaQkRowsArePermutedInGguf) {
  SINKSCOPE_REQUIRE_SHARED(path, "oracles/llama_gguf/model.gguf");
  const Described d = described(path);
  EXPECT_THAT(d.model.obstacles, IsEmpty());
  const TensorRef* q = d.model.roles.find(Role::q, 2);
  EXPECT_EQ(q->order, RowOrder::llama_pairs);
  EXPECT_EQ(q->n_heads, 4);
  EXPECT_EQ(q->head_dim, 24);
  EXPECT_EQ(q->rotary_dim, 24);
  const TensorRef* k = d.model.roles.find(Role::k, 0);
  EXPECT_EQ(k->order, RowOrder::llama_pairs);
  EXPECT_EQ(k->n_heads, 2);
  EXPECT_EQ(d.model.roles.find(Role::v, 0)->order, RowOrder::as_stored);
  EXPECT_EQ(d.model.spec.rope.theta, 500.0);
  EXPECT_TRUE(d.model.spec.rope.has_divisors);
  EXPECT_EQ(d.tensor(Role::rope_divisors, kNoLayer), "rope_freqs.weight");
}

TEST(FieldCases, FC14_QwenRowsAreNotPermutedInGguf) {
  SINKSCOPE_REQUIRE_SHARED(path, "oracles/qwen2_gguf/model.gguf");
  const Described d = described(path);
  EXPECT_THAT(d.model.obstacles, IsEmpty());
  EXPECT_EQ(d.model.spec.architecture, "qwen2");
  EXPECT_EQ(d.model.spec.head_dim, 8);  // no key_length: 64 / 8
  EXPECT_EQ(d.model.spec.rope.rotary_dim, 8);
  EXPECT_EQ(d.model.spec.norm_eps, 0.002);
  EXPECT_TRUE(d.model.spec.qkv_bias);
  EXPECT_FALSE(d.model.spec.o_bias);
  for (const Role role : {Role::q, Role::k, Role::q_bias, Role::k_bias, Role::v_bias}) {
    EXPECT_EQ(d.model.roles.find(role, 2)->order, RowOrder::as_stored) << to_string(role);
  }
  EXPECT_EQ(d.tensor(Role::k_bias, 1), "blk.1.attn_k.bias");
}

TEST(FieldCases, FC14_OnlyTheRotaryPartOfAHeadIsPermutedAndBiasesAreToo) {
  TinyModel tiny;
  tiny.key("rope.dimension_count", 2u);
  for (const std::string block : {"blk.0.", "blk.1."}) {
    tiny.tensor(block + "attn_q.bias", {24}).tensor(block + "attn_k.bias", {8});
    tiny.tensor(block + "attn_v.bias", {8});
  }
  const Described d = tiny.describe();
  EXPECT_THAT(d.model.obstacles, IsEmpty());
  EXPECT_TRUE(d.model.spec.qkv_bias);
  const TensorRef* bias = d.model.roles.find(Role::k_bias, 1);
  EXPECT_EQ(bias->order, RowOrder::llama_pairs);
  EXPECT_EQ(bias->n_heads, 2);
  EXPECT_EQ(bias->head_dim, 4);
  EXPECT_EQ(bias->rotary_dim, 2);
}

TEST(GgufRoles, WithoutOutputTheHeadIsTheEmbedding) {
  TinyModel tiny;
  tiny.without = {"output.weight"};
  const Described d = tiny.describe();
  EXPECT_THAT(d.model.obstacles, IsEmpty());
  EXPECT_TRUE(d.model.spec.tied);
  EXPECT_EQ(d.tensor(Role::unembed, kNoLayer), "token_embd.weight");
}

TEST(GgufRoles, TensorsThatDoNotFitAreObstaclesWithBothShapes) {
  TinyModel tiny;
  tiny.without = {"blk.1.attn_v.weight"};
  tiny.tensor("blk.0.attn_q.weight", {20, 10});
  tiny.tensor("blk.0.attn_sub_norm.weight", {24});
  tiny.tensor("blk.1.attn_rot_embd.weight", {2});  // left over, harmless
  const Described d = tiny.describe();
  EXPECT_THAT(
      d.model.obstacles,
      ElementsAre(
          HasSubstr("missing tensor blk.1.attn_v.weight"),
          AllOf(HasSubstr("tensor blk.0.attn_q.weight has shape [20, 10], expected [24, 10]"),
                HasSubstr("6 x head_dim 4")),
          "1 unexpected tensor: blk.0.attn_sub_norm.weight"));
  EXPECT_EQ(d.model.roles.find(Role::q, 0), nullptr);
  EXPECT_EQ(d.model.roles.find(Role::v, 1), nullptr);
  const Described moe = TinyModel().key("expert_count", 8u).describe();
  EXPECT_THAT(moe.model.obstacles, ElementsAre(HasSubstr("llama.expert_used_count")));
}

TEST(FieldCases, FC20_NormsOfAModelWithUnreadableTensorsKeepTheirRoles) {
  TinyModel tiny;
  tiny.without = {"blk.1.ffn_up.weight", "blk.0.ffn_norm.weight"};
  tiny.bytes.tensor("blk.1.ffn_up.weight", {14, 10}, 250, std::string(64, 'x'));
  tiny.bytes.tensor("blk.0.ffn_norm.weight", {10}, 250, std::string(64, 'x'));
  const Described d = tiny.describe();
  EXPECT_THAT(
      d.model.obstacles,
      ElementsAre(
          AllOf(HasSubstr("blk.0.ffn_norm.weight"), HasSubstr("type 250 cannot be decoded here")),
          AllOf(HasSubstr("blk.1.ffn_up.weight"), HasSubstr("type 250 cannot be decoded here"))));
  EXPECT_NE(d.model.roles.find(Role::ln1, 1), nullptr);
  EXPECT_NE(d.model.roles.find(Role::ln2, 1), nullptr);
  EXPECT_EQ(d.model.roles.find(Role::ln2, 0), nullptr);
}

TEST(GgufRoles, UnknownArchitecturesShowTheirNorms) {
  GgufBytes bytes;
  bytes.key("general.architecture", "falcon").key("falcon.attention.layer_norm_rms_epsilon", 1e-6f);
  bytes.floats("output_norm.weight", {2}, {1, 2});
  bytes.floats("blk.0.post_attention_norm.weight", {2}, {3, 4});
  bytes.floats("blk.0.post_ffw_norm.weight", {2}, {5, 6});
  bytes.floats("blk.2.attn_q_norm.weight", {3}, {7, 8, 9});
  bytes.floats("blk.2.attn_q_a_norm.weight", {3}, {7, 8, 9});
  const Described d = described(written(bytes));
  EXPECT_THAT(d.model.obstacles, ElementsAre(HasSubstr("\"falcon\"")));
  EXPECT_THAT(d.model.warnings, ElementsAre(HasSubstr("attn_q_a_norm.weight")));
  EXPECT_EQ(d.model.spec.n_layers, 3);
  EXPECT_EQ(d.model.spec.norm_eps, 1e-6);
  EXPECT_EQ(d.tensor(Role::ln_final, kNoLayer), "output_norm.weight");
  EXPECT_EQ(d.tensor(Role::ln1_post, 0), "blk.0.post_attention_norm.weight");
  EXPECT_EQ(d.tensor(Role::ln2_post, 0), "blk.0.post_ffw_norm.weight");
  EXPECT_EQ(d.tensor(Role::q_norm, 2), "blk.2.attn_q_norm.weight");
  EXPECT_EQ(d.model.roles.find(Role::ln_final, kNoLayer)->stored_offset, 0.0f);

  GgufBytes between;  // post_attention_norm is the norm before the MLP where there is no other
  between.key("general.architecture", "gpt-oss");
  between.floats("blk.0.attn_norm.weight", {2}, {1, 1});
  between.floats("blk.0.post_attention_norm.weight", {2}, {1, 1});
  EXPECT_EQ(described(written(between)).tensor(Role::ln2, 0), "blk.0.post_attention_norm.weight");

  EXPECT_THAT(described(written(GgufBytes())).model.obstacles,
              ElementsAre(HasSubstr("general.architecture")));
}

TEST(FieldCases, FC15_GemmaNormsAreStoredWithTheOneAlreadyAdded) {
  for (const char* architecture : {"gemma", "gemma2", "gemma3"}) {
    GgufBytes bytes;
    bytes.key("general.architecture", architecture);
    for (const char* name :
         {"output_norm", "blk.0.attn_norm", "blk.0.post_attention_norm", "blk.0.ffn_norm",
          "blk.0.post_ffw_norm", "blk.0.attn_q_norm", "blk.0.attn_k_norm"}) {
      bytes.floats(std::string(name) + ".weight", {3}, {1.25f, 0.5f, 9.0f});
    }
    const std::string path = written(bytes);
    const GgufModel model = described(path).model;
    EXPECT_EQ(model.spec.norm_offset, 1.0);
    EXPECT_EQ(model.roles.find(Role::ln_final, kNoLayer)->stored_offset, 1.0f);
    for (const Role role :
         {Role::ln1, Role::ln1_post, Role::ln2, Role::ln2_post, Role::q_norm, Role::k_norm}) {
      EXPECT_EQ(model.roles.find(role, 0)->stored_offset, 1.0f) << to_string(role);
    }
    // Gemma's Hugging Face file holds w = effective - 1; the GGUF file holds the effective gain.
    const NormGain gain = open_model(path)->norm_gain(Role::ln_final, kNoLayer);
    EXPECT_THAT(gain.effective, ElementsAre(1.25f, 0.5f, 9.0f));
    EXPECT_THAT(gain.raw, ElementsAre(1.25f, 0.5f, 9.0f));
  }
}

}  // namespace
}  // namespace sinkscope
