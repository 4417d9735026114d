// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/arch_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "capture/checkpoint/hf_names.h"
#include "tests/checkpoint/gguf_test_files.h"
#include "tests/support/safetensors_bytes.h"
#include "tests/support/tiny_folder.h"

namespace sinkscope {
namespace {

using namespace test;  // NOLINT: the helpers of the tests
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

std::string written(const json& arch) {
  const std::string path = scratch_folder() + "/arch.json";
  std::ofstream(path) << arch;
  return path;
}

std::unique_ptr<ModelFiles> opened_as(const std::string& folder, const json& arch) {
  return open_model(folder, {.arch_file = written(arch)});
}

json arch_of(const ModelFiles& model) { return json::parse(arch_to_json(model).dump()); }

void expect_same_roles(const ModelFiles& a, const ModelFiles& b) {
  for (int layer = 0; layer < a.spec().n_layers; ++layer)
    for (const Role role : layer_roles(a.spec(), layer)) {
      ASSERT_TRUE(b.has(role, layer)) << to_string(role);
      EXPECT_EQ(a.read_vector(role, layer), b.read_vector(role, layer)) << to_string(role);
    }
}

// What a model says about itself opens it again, with nothing left over and nothing lost.
TEST(ArchFile, EveryFamilyOpensByItsOwnDescription) {
  for (const char* name : {"llama",         "llama_tied",  "mistral",
                           "qwen2",         "qwen3",       "qwen3_moe",
                           "mixtral",       "gpt_neox",    "gpt_neox_seq",
                           "gemma2",        "gemma3",      "olmo2",
                           "olmo3",         "phi3",        "granite",
                           "granite_swa",   "smollm3",     "gpt_oss",
                           "gpt_oss_mxfp4", "deepseek_v3", "deepseek_v3_fp8",
                           "qwen3_next",    "qwen3_5",     "qwen3_5_moe",
                           "gpt2",          "opt",         "ministral3",
                           "mimo_v2_flash", "flint",       "axk2",
                           "kimi_linear",   "bert",        "gemma4",
                           "gemma4_moe"}) {
    SINKSCOPE_REQUIRE_SHARED(folder, std::string("oracles/") + name);
    const auto model = open_model(folder);
    const auto again = opened_as(folder, arch_of(*model));
    ASSERT_THAT(again->obstacles(), IsEmpty()) << name;
    EXPECT_EQ(model->spec(), again->spec()) << name;
    EXPECT_TRUE(arch_of(*model)["unmapped"].empty()) << name << arch_of(*model)["unmapped"];
    expect_same_roles(*model, *again);
  }
}

// A checkpoint with gated norms under names of its own.
TEST(ArchFile, ACheckpointUnderItsOwnNamesOpensWithoutCode) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/axk2");
  const auto model = open_model(folder);
  json arch = arch_of(*model);
  const auto renamed = [](std::string name) {
    for (const auto& [from, to] : {std::pair<std::string, std::string>{"model.layers.", "trunk."},
                                   {"input_layernorm.W_", "pre.gate_"},
                                   {"self_attn", "mix"}})
      if (const auto at = name.find(from); at != std::string::npos)
        name.replace(at, from.size(), to);
    return name;
  };
  for (auto& [role, names] : arch["roles"].items()) {
    if (names.is_string()) names = renamed(names);
    if (names.is_array())
      for (auto& one : names)
        if (one.is_string()) one = renamed(one);
  }
  // A pattern says the same as a list.
  arch["roles"]["o"] = "trunk.{layer}.mix.o_proj.weight";
  SafetensorsBytes file;
  for (const TensorInfo& tensor : model->checkpoint().tensors()) {
    std::vector<float> values(static_cast<std::size_t>(tensor.n_elements()));
    model->checkpoint().read_rows(model->checkpoint().find(tensor.name), 0, tensor.n_rows(),
                                  values.data());
    file.floats(renamed(tensor.name), tensor.shape, values);
  }
  const std::string own = scratch_folder();
  file.write(own + "/model.safetensors");
  std::ofstream(own + "/config.json") << R"({"model_type": "our_gated_transformer"})";
  EXPECT_THAT(open_model(own)->obstacles(), ::testing::Not(IsEmpty()));
  const auto opened = opened_as(own, arch);
  ASSERT_THAT(opened->obstacles(), IsEmpty());
  expect_same_roles(*model, *opened);

  json lacking = arch;
  lacking["roles"].erase("o");
  lacking["roles"]["ln1_gate_up"][1] = "trunk.1.nothing";
  EXPECT_THAT(opened_as(own, lacking)->obstacles(),
              AllOf(::testing::Contains(HasSubstr("no tensor is named for the role o")),
                    ::testing::Contains(HasSubstr("missing tensor trunk.1.nothing")),
                    ::testing::Contains(HasSubstr("unexpected tensors"))));
}

// Sizes and patterns alone: what is left open follows as in the Llama family.
TEST(ArchFile, AFileWrittenByHandNeedsNoMoreThanSizesAndNames) {
  const TinyFolder tiny = tiny_folder();
  const std::string folder = tiny.write(scratch_folder());
  const auto model = open_model(folder);
  const ArchSpec& spec = model->spec();
  const json arch = {{"schema", "sinkscope.arch/1"},
                     {"spec",
                      {{"architecture", "ours"},
                       {"n_layers", spec.n_layers},
                       {"n_heads", spec.n_heads},
                       {"n_kv_heads", spec.n_kv_heads},
                       {"head_dim", spec.head_dim},
                       {"d_model", spec.d_model},
                       {"d_mlp", spec.d_mlp},
                       {"vocab_size", spec.vocab_size},
                       {"n_ctx", spec.n_ctx},
                       {"norm_eps", spec.norm_eps},
                       {"rope", {{"theta", spec.rope.theta}}}}},
                     {"roles",
                      {{"embed", "model.embed_tokens.weight"},
                       {"unembed", "lm_head.weight"},
                       {"ln_final", "model.norm.weight"},
                       {"ln1", "model.layers.{layer}.input_layernorm.weight"},
                       {"q", "model.layers.{layer}.self_attn.q_proj.weight"},
                       {"k", "model.layers.{layer}.self_attn.k_proj.weight"},
                       {"v", "model.layers.{layer}.self_attn.v_proj.weight"},
                       {"o", "model.layers.{layer}.self_attn.o_proj.weight"},
                       {"ln2", "model.layers.{layer}.post_attention_layernorm.weight"},
                       {"gate", "model.layers.{layer}.mlp.gate_proj.weight"},
                       {"up", "model.layers.{layer}.mlp.up_proj.weight"},
                       {"down", "model.layers.{layer}.mlp.down_proj.weight"}}}};
  const auto ours = opened_as(folder, arch);
  ASSERT_THAT(ours->obstacles(), IsEmpty());
  EXPECT_EQ(ours->spec().rope.rotary_dim, spec.head_dim);
  EXPECT_EQ(ours->spec().attention_scale, spec.attention_scale);
  EXPECT_EQ(ours->spec().window, spec.window);
  expect_same_roles(*model, *ours);
}

TEST(ArchFile, WhatDoesNotBelongThereIsNamed) {
  const std::string folder = tiny_folder().write(scratch_folder());
  const json arch = arch_of(*open_model(folder));
  const auto refusal = [&](const std::function<void(json&)>& bend) {
    json bent = arch;
    bend(bent);
    return failure_of([&] { opened_as(folder, bent); });
  };
  EXPECT_THAT(refusal([](json& a) { a["schema"] = "other"; }).second,
              HasSubstr("sinkscope.arch/1"));
  EXPECT_THAT(refusal([](json& a) { a["spec"]["n_heds"] = 4; }).second, HasSubstr("called n_heds"));
  EXPECT_THAT(refusal([](json& a) { a["spec"]["n_heads"] = "4"; }).second,
              HasSubstr("expected a whole number"));
  EXPECT_THAT(refusal([](json& a) { a["spec"]["activation"] = "mish"; }).second,
              HasSubstr("one of silu, gelu"));
  EXPECT_THAT(refusal([](json& a) { a["spec"]["n_layers"] = 1 << 25; }).second,
              HasSubstr("n_layers is 33554432, expected 1 to 1024"));
  EXPECT_THAT(refusal([](json& a) { a["spec"]["window"] = {0}; }).second,
              HasSubstr("window has 1 entries for 2 layers"));
  EXPECT_THAT(refusal([](json& a) { a["roles"]["queries"] = "x"; }).second,
              HasSubstr("no role is called queries"));
  EXPECT_THAT(refusal([](json& a) { a["roles"]["q"] = {"x"}; }).second,
              HasSubstr("one name a block (2), found a list of 1"));
  EXPECT_THAT(refusal([](json& a) { a["packing"]["ln1"] = "experts_gate_up"; }).second,
              HasSubstr("ln1 cannot be packed as experts_gate_up"));
  EXPECT_THAT(refusal([](json& a) { a["packing"]["down_bias"] = "own"; }).second,
              HasSubstr("packing names down_bias, roles do not"));
  EXPECT_THAT(refusal([](json& a) { a["spec"]["rope"]["theta"] = 0; }).second,
              HasSubstr("rope.theta is 0"));
  EXPECT_THAT(refusal([](json& a) { a["spec"]["n_kv_heads"] = 3; }).second,
              HasSubstr("not a multiple of n_kv_heads 3"));
  EXPECT_THAT(refusal([](json& a) {
                a["spec"]["index"] = {{"n_heads", 1 << 26}, {"head_dim", 1 << 26}};
              }).second,
              HasSubstr("index.n_heads is"));
  EXPECT_THAT(refusal([](json& a) { a["roles"]["q"] = 5; }).second,
              HasSubstr("5 is no tensor name"));
  EXPECT_THAT(refusal([](json& a) { a["spec"]["head_dim"] = 1e300; }).second,
              HasSubstr("expected a whole number"));
  EXPECT_THAT(refusal([](json& a) { a["packing"]["q"] = "sideways"; }).second,
              HasSubstr("no packing is called \"sideways\""));
  EXPECT_EQ(failure_of([&] { open_model(folder, {.arch_file = folder + "/none.json"}); }).first,
            ErrorKind::not_found);
  EXPECT_THAT(refusal([](json& a) { a["stored_offset"] = 2; }).second,
              HasSubstr("stored_offset is 2, expected 0 or 1"));
}

// q and k in pairs, divisors of frequencies: what a converter did is part of the description.
TEST(ArchFile, AGgufFileOpensByItsOwnDescription) {
  SINKSCOPE_REQUIRE_SHARED(path, "oracles/llama_gguf/model.gguf");
  const auto model = open_model(path);
  const json arch = arch_of(*model);
  EXPECT_EQ(arch["packing"]["q"], "rotary_pairs");
  EXPECT_TRUE(arch["unmapped"].empty());
  const auto again = opened_as(path, arch);
  ASSERT_THAT(again->obstacles(), IsEmpty());
  EXPECT_EQ(model->spec(), again->spec());
  expect_same_roles(*model, *again);
  json plain = arch;
  plain["packing"].erase("q");
  EXPECT_NE(opened_as(path, plain)->read_vector(Role::q, 0), model->read_vector(Role::q, 0));
  json lacking = arch;
  lacking["roles"].erase("o");
  EXPECT_THAT(opened_as(path, lacking)->obstacles(),
              AllOf(::testing::Contains(HasSubstr("no tensor is named for the role o")),
                    ::testing::Contains(HasSubstr("unexpected tensors: blk.0.attn_output"))));
}

}  // namespace
}  // namespace sinkscope
