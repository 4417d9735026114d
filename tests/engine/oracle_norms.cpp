// SPDX-License-Identifier: GPL-3.0-or-later
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/engine/oracle_compare.h"

namespace sinkscope::test {
namespace {

// A name under /norm: the block, −1 = none, and the module without what is in front of its number.
struct NormName {
  int layer = -1;
  std::string module;
};

NormName parse(const std::string& name) {
  for (std::size_t begin = 0; begin < name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    const std::string word = name.substr(begin, end - begin);
    if (word.find_first_not_of("0123456789") == std::string::npos)
      return {std::stoi(word), name.substr(end + 1)};
    begin = end + 1;
  }
  return {-1, name};
}

// The tap that has the output of a module; in blocks first.
const std::map<std::string, std::string> kTaps = {
    {"input_layernorm", "ln1.hook_out"},
    {"ln_1", "ln1.hook_out"},
    {"self_attn_layer_norm", "ln1.hook_out"},
    {"q_input_layernorm", "ln1.hook_out"},
    {"k_input_layernorm", "ln1_k.hook_out"},
    {"v_input_layernorm", "ln1_v.hook_out"},
    {"attention.output.LayerNorm", "ln1_post.hook_out"},
    {"post_attention_layernorm", "ln2.hook_out"},  // or ln1_post: see tap_of
    {"ln_2", "ln2.hook_out"},
    {"final_layer_norm", "ln2.hook_out"},
    {"pre_feedforward_layernorm", "ln2.hook_out"},
    {"post_feedforward_layernorm", "ln2_post.hook_out"},
    {"output.LayerNorm", "ln2_post.hook_out"},
    {"pre_feedforward_layernorm_2", "ln2_experts.hook_out"},
    {"post_feedforward_layernorm_1", "ln2_post_dense.hook_out"},
    {"post_feedforward_layernorm_2", "ln2_post_experts.hook_out"},
    {"router.norm", "mlp.hook_router_norm"},
    {"post_per_layer_input_norm", "hook_per_layer_add"},
    {"linear_attn.norm", "linear.hook_norm"},
    {"self_attn.o_norm", "linear.hook_norm"},
    {"self_attn.q_norm", "attn.hook_q_norm"},
    {"self_attn.k_norm", "attn.hook_k_norm"},
    {"self_attn.kv_norm", "attn.hook_k_norm"},
    {"self_attn.v_norm", "attn.hook_v_norm"},
    {"self_attn.q_b_norm", "attn.hook_q"},
    {"self_attn.q_a_norm", "attn.hook_q_latent"},
    {"self_attn.q_a_layernorm", "attn.hook_q_latent"},
    {"self_attn.kv_a_layernorm", "attn.hook_kv_latent"},
    {"self_attn.compressor.kv_norm", "attn.hook_compressed_kv"},
    {"attn_hc.input_norm", "hyper_attn.hook_norm"},
    {"attn_hyper_connection.hc_norm", "hyper_attn.hook_norm"},
    {"ffn_hc.input_norm", "hyper_mlp.hook_norm"},
    {"mlp_hyper_connection.hc_norm", "hyper_mlp.hook_norm"},
    {"ple.norm_key", "ngram.hook_key_norm"},
    {"ple.norm_query", "ngram.hook_query_norm"},
    {"ple.norm_conv", "ngram.hook_conv_norm"},
    {"embeddings.LayerNorm", "embed_norm.hook_out"},
    {"model.embed_tokens", "embed_norm.hook_out"},
    {"model.embed_tokens.embed_norm", "embed_norm.hook_out"},
    {"model.per_layer_projection_norm", "per_layer_proj_norm.hook_out"},
    {"model.hc_head.input_norm", "hyper_final.hook_norm"},
    {"model.hyper_connection_mixer.hc_norm", "hyper_final.hook_norm"},
};

// residual/final_norm holds these.
const std::set<std::string> kFinal = {"model.norm", "gpt_neox.final_layer_norm",
                                      "model.decoder.final_layer_norm", "transformer.ln_f"};

// What no site records, and why that is right.
const std::map<std::string, std::string> kUnrecorded = {
    {"attention_input.norm", "x / rms(x) of every state in a mix over depth: the mix is compared"},
    {"mlp_input.norm", "likewise"},
    {"model.final_input.norm", "likewise"},
    {"self_attn.indexer.k_norm", "the oracles' indexers keep every key, so none is computed"},
    {"self_attn.indexer.q_layernorm", "likewise"},
    {"self_attn.compressor.indexer.kv_norm", "likewise"}};

std::string tap_of(const NormName& norm, const ModelFiles& model) {
  if (norm.module == "post_attention_layernorm" && model.spec().has_ln1_post)
    return "ln1_post.hook_out";
  const auto found = kTaps.find(norm.module);
  return found == kTaps.end() ? "" : found->second;
}

// A GatedNorm's inner norm: times its gate it is what the norm puts out.
void compare_inner_norm(const RecordedRun& got, const H5Reference& want, const NormName& norm,
                        const std::string& name) {
  const std::string half = norm.module == "input_layernorm.norm" ? "ln1" : "ln2";
  const std::vector<float> inner = want.floats("/norm/" + name),
                           gate = tap_values(got, half + ".hook_gate", norm.layer);
  ASSERT_EQ(inner.size(), gate.size()) << name;
  std::vector<float> gated = inner;
  for (std::size_t i = 0; i < gated.size(); ++i) gated[i] *= gate[i];
  compare_tap(got, half + ".hook_out", norm.layer, gated, kValues, name);
}

}  // namespace

void compare_norms(const RecordedRun& got, const H5Reference& want, const ModelFiles& model) {
  for (const std::string& name : want.children("/norm")) {
    const NormName norm = parse(name);
    if (kUnrecorded.contains(norm.module)) continue;
    const std::vector<std::int64_t> dims = want.dims("/norm/" + name);
    std::vector<float> expected = want.floats("/norm/" + name);
    if (kFinal.contains(norm.module)) {
      expect_close(got.floats("/residual/final_norm"), expected, kValues, name);
    } else if (norm.module.ends_with("_layernorm.norm")) {
      compare_inner_norm(got, want, norm, name);
    } else {
      const std::string tap = tap_of(norm, model);
      ASSERT_NE(tap, "") << name << ": the test knows no site that records this norm";
      const bool is_by_head = tap.starts_with("attn.") || tap.starts_with("linear.");
      if (dims.size() == 3 && is_by_head)
        expected = heads_first(expected, dims[0], dims[1], dims[2]);
      compare_tap(got, tap, norm.layer, expected, kValues, name);
    }
  }
}

}  // namespace sinkscope::test
