// SPDX-License-Identifier: GPL-3.0-or-later
// GPT-OSS as its authors' own files have it: other names, q, k and v in one tensor, and a config
// that says no architecture.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/engine/captured.h"
#include "tests/engine/plain_loops.h"
#include "tests/support/h5_reference.h"
#include "tests/support/safetensors_bytes.h"
#include "tests/support/shared_files.h"

namespace sinkscope::test {
namespace {

// Copies tensors of a model byte by byte under other names.
struct Copy {
  const Checkpoint& from;
  SafetensorsBytes to;

  std::string bytes(const TensorInfo& tensor) const {
    std::string data(tensor.n_bytes, '\0');
    from.read_raw(from.find(tensor.name), 0, tensor.n_bytes, data.data());
    return data;
  }
  const TensorInfo& info(const std::string& name) const {
    return from.tensors().at(static_cast<std::size_t>(from.find(name)));
  }
  void one(const std::string& name, const std::string& as) {
    TensorInfo tensor = info(name);
    if (tensor.dtype == "MXFP4") {  // bytes of two codes, 16 of them beside an exponent
      tensor.dtype = "U8";
      tensor.shape.back() /= 32;
      tensor.shape.push_back(16);
    }
    if (tensor.dtype == "F8_E8M0") tensor.dtype = "U8";
    to.tensor(as, tensor.dtype, tensor.shape, bytes(info(name)));
  }
  void stacked(const std::vector<std::string>& names, const std::string& as) {
    std::vector<std::int64_t> shape = info(names.front()).shape;
    shape.front() = 0;
    std::string data;
    for (const std::string& name : names) {
      shape.front() += info(name).shape.front();
      data += bytes(info(name));
    }
    to.tensor(as, info(names.front()).dtype, shape, data);
  }
};

std::string openai_folder(const ModelFiles& model) {
  Copy copy{model.checkpoint(), {}};
  copy.one("model.embed_tokens.weight", "embedding.weight");
  copy.one("lm_head.weight", "unembedding.weight");
  copy.one("model.norm.weight", "norm.scale");
  for (int layer = 0; layer < model.spec().n_layers; ++layer) {
    const std::string from = fmt::format("model.layers.{}.", layer),
                      to = fmt::format("block.{}.", layer), attention = from + "self_attn.";
    copy.one(from + "input_layernorm.weight", to + "attn.norm.scale");
    for (const char* part : {"weight", "bias"}) {
      std::vector<std::string> qkv;
      for (const char* letter : {"q", "k", "v"})
        qkv.push_back(fmt::format("{}{}_proj.{}", attention, letter, part));
      copy.stacked(qkv, to + "attn.qkv." + part);
      copy.one(fmt::format("{}o_proj.{}", attention, part), to + "attn.out." + part);
      copy.one(fmt::format("{}mlp.router.{}", from, part), to + "mlp.gate." + part);
    }
    copy.one(attention + "sinks", to + "attn.sinks");
    copy.one(from + "post_attention_layernorm.weight", to + "mlp.norm.scale");
    for (const auto& [hf, own] : {std::pair{"gate_up_proj", "mlp1"}, {"down_proj", "mlp2"}}) {
      const std::string experts = fmt::format("{}mlp.experts.{}_", from, hf),
                        mlp = fmt::format("{}mlp.{}_", to, own);
      copy.one(experts + "blocks", mlp + "weight.blocks");
      copy.one(experts + "scales", mlp + "weight.scales");
      copy.one(experts + "bias", mlp + "bias");
    }
  }
  const std::string folder = scratch_folder();
  copy.to.write(folder + "/model.safetensors");
  const ArchSpec& spec = model.spec();
  std::ofstream(folder + "/config.json")
      << nlohmann::json{{"num_hidden_layers", spec.n_layers},
                        {"num_experts", spec.moe.n_experts},
                        {"experts_per_token", spec.moe.n_used},
                        {"vocab_size", spec.vocab_size},
                        {"hidden_size", spec.d_model},
                        {"intermediate_size", spec.moe.d_expert},
                        {"swiglu_limit", spec.moe.clamp},
                        {"head_dim", spec.head_dim},
                        {"num_attention_heads", spec.n_heads},
                        {"num_key_value_heads", spec.n_kv_heads},
                        {"sliding_window", spec.window.front()},
                        {"initial_context_length", spec.rope.original_context},
                        {"rope_theta", spec.rope.theta},
                        {"rope_scaling_factor", spec.rope.factor},
                        {"rope_ntk_alpha", spec.rope.beta_slow},
                        {"rope_ntk_beta", spec.rope.beta_fast},
                        {"rms_norm_eps", spec.norm_eps}};  // theirs has none: 1e-5
  return folder;
}

TEST(OpenAiNames, GptOssUnderThemIsTheSameModel) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/gpt_oss_mxfp4");
  const auto a = open_model(folder);
  const auto b = open_model(openai_folder(*a));
  ASSERT_THAT(b->obstacles(), ::testing::IsEmpty());
  EXPECT_EQ(b->spec().architecture, "gpt_oss");
  EXPECT_EQ(b->spec().rope, a->spec().rope);
  EXPECT_EQ(b->spec().window, a->spec().window);
  const CaptureRequest request = everything_of(folder);
  EXPECT_EQ(first_difference(capture(*a, request), capture(*b, request)), "");
}

}  // namespace
}  // namespace sinkscope::test
