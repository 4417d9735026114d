// SPDX-License-Identifier: GPL-3.0-or-later
// BERT: an encoder. Every query sees every key, and the norms stand behind the
// adds:
//   h = N(E[tok] + P[t] + T[0]);  h = N(h + Attn(h));  h = N(h + MLP(h))
#include "capture/checkpoint/families/families.h"

namespace sinkscope {
namespace {

// Norms of old files are called gamma and beta.
constexpr TensorName kBert[] = {
    {Role::embed, "embeddings.word_embeddings.weight"},
    {Role::pos_embed, "embeddings.position_embeddings.weight"},
    {Role::type_embed, "embeddings.token_type_embeddings.weight"},
    {Role::embed_norm, "embeddings.LayerNorm.weight"},
    {Role::embed_norm, "embeddings.LayerNorm.gamma"},
    {Role::embed_norm_bias, "embeddings.LayerNorm.bias"},
    {Role::embed_norm_bias, "embeddings.LayerNorm.beta"},
    {Role::q, "attention.self.query.weight"},
    {Role::k, "attention.self.key.weight"},
    {Role::v, "attention.self.value.weight"},
    {Role::o, "attention.output.dense.weight"},
    {Role::q_bias, "attention.self.query.bias"},
    {Role::k_bias, "attention.self.key.bias"},
    {Role::v_bias, "attention.self.value.bias"},
    {Role::o_bias, "attention.output.dense.bias"},
    {Role::ln1_post, "attention.output.LayerNorm.weight"},
    {Role::ln1_post, "attention.output.LayerNorm.gamma"},
    {Role::ln1_post_bias, "attention.output.LayerNorm.bias"},
    {Role::ln1_post_bias, "attention.output.LayerNorm.beta"},
    {Role::up, "intermediate.dense.weight"},
    {Role::up_bias, "intermediate.dense.bias"},
    {Role::down, "output.dense.weight"},
    {Role::down_bias, "output.dense.bias"},
    {Role::ln2_post, "output.LayerNorm.weight"},
    {Role::ln2_post, "output.LayerNorm.gamma"},
    {Role::ln2_post_bias, "output.LayerNorm.bias"},
    {Role::ln2_post_bias, "output.LayerNorm.beta"},
};

void read_bert(const JsonKeys& keys, HfConfig& out) {
  ArchSpec& spec = out.spec;
  spec.norm_kind = NormKind::layer_norm;
  spec.norm_eps = keys.number("layer_norm_eps").value_or(1e-12);
  spec.norm_bias = true;
  spec.bidirectional = spec.post_norm = spec.embed_norm = spec.learned_positions = true;
  spec.has_ln1 = spec.has_ln2 = spec.has_final_norm = false;
  spec.has_ln1_post = spec.has_ln2_post = true;
  spec.has_head = false;  // what fills in masked words is not a next token
  spec.qkv_bias = spec.o_bias = spec.mlp_bias = true;
  spec.mlp_gated = false;
  spec.n_kv_heads = spec.n_heads;
  spec.n_types = static_cast<int>(keys.whole("type_vocab_size", 1, 1 << 20).value_or(2));
  const std::string positions = keys.text("position_embedding_type").value_or("absolute");
  if (positions != "absolute" || keys.boolean("is_decoder").value_or(false))
    out.obstacles.push_back("only encoders with absolute positions are supported");
}

constexpr Family kFamilies[] = {
    {.model_type = "bert",
     .vocab_size = 30522,
     .d_mlp = 3072,
     .n_ctx = 512,
     .d_model = 768,
     .n_layers = 12,
     .n_heads = 12,
     .has_rope = false,
     .activation = "gelu",
     .names = kBert,
     .prefix = "bert.",
     .layers = "encoder.layer.",
     .read = read_bert},
};

}  // namespace

std::span<const Family> bert_families() { return kFamilies; }

}  // namespace sinkscope
