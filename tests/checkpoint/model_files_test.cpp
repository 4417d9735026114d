// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/model_files.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "capture/checkpoint/hf_config.h"
#include "capture/checkpoint/hf_names.h"
#include "tests/checkpoint/gguf_test_files.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/safetensors_bytes.h"
#include "tests/support/tiny_folder.h"

namespace sinkscope {
namespace {

using namespace test;  // NOLINT: the helpers of the tests
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

TEST(OpenModel, OneFileReadsTheConfigBesideIt) {
  const std::string folder = tiny_folder().write(scratch_folder());
  const auto model = open_model(folder + "/model.safetensors");
  EXPECT_THAT(model->obstacles(), IsEmpty());
  EXPECT_EQ(model->path(), folder + "/model.safetensors");
  EXPECT_EQ(model->container(), Container::safetensors);
  EXPECT_EQ(model->gguf(), nullptr);
  EXPECT_EQ(nlohmann::json::parse(model->config_text()), tiny_folder().config);
  EXPECT_EQ(model->spec().name, fs::path(folder).filename().string());
}

TEST(OpenModel, AShardAloneSaysThatItIsOne) {
  const std::string folder = tiny_folder().write(scratch_folder(), 2);
  const auto model = open_model(folder + "/" + shard_name(2, 2));
  EXPECT_THAT(model->warnings(), Contains(HasSubstr("number 2 of 2: open the folder")));
  EXPECT_THAT(model->obstacles(), Contains(HasSubstr("missing tensor")));
}

TEST(OpenModel, WithoutConfigTensorsAndNormsCanStillBeSeen) {
  const TinyFolder tiny = tiny_folder();
  const std::string folder = tiny.write(scratch_folder());
  fs::remove(folder + "/config.json");
  const auto model = open_model(folder);
  EXPECT_THAT(model->obstacles(), ElementsAre(HasSubstr("no config.json")));
  EXPECT_EQ(model->config_text(), "");
  EXPECT_EQ(model->checkpoint().tensors().size(), tiny.tensors.size());
  EXPECT_EQ(model->norm_gain(Role::ln2, 1).raw,
            tiny.tensors.at("model.layers.1.post_attention_layernorm.weight").values);
}

TEST(OpenModel, PicklesAreRefusedWithAWayToConvertThem) {
  const std::string folder = scratch_folder();
  write_bytes(folder + "/config.json", tiny_folder().config.dump());
  write_bytes(folder + "/pytorch_model.bin", "PK\x03\x04 and so on");
  write_bytes(folder + "/zip", "PK\x03\x04 and so on");
  write_bytes(folder + "/old", "\x80\x02}q");
  write_bytes(folder + "/weights.pth", "anything at all");
  for (const char* name : {"", "/pytorch_model.bin", "/zip", "/old", "/weights.pth"}) {
    const auto [kind, message] = failure_of([&] { open_model(folder + name); });
    EXPECT_EQ(kind, ErrorKind::unsupported) << name;
    const std::string named = *name == '\0' ? "/pytorch_model.bin" : name;
    EXPECT_THAT(message, AllOf(HasSubstr(folder + named), HasSubstr("safe_serialization=True")));
  }
}

TEST(OpenModel, ContentDecidesNotTheSuffix) {
  const std::string folder = tiny_folder().write(scratch_folder());
  const auto from_folder = open_model(folder);
  const std::string gguf = write_gguf(*from_folder, folder + "/weights.bin");
  EXPECT_EQ(open_model(gguf)->container(), Container::gguf);
  EXPECT_NE(open_model(gguf)->gguf(), nullptr);
  fs::rename(folder + "/model.safetensors", folder + "/model.pt");
  EXPECT_THAT(open_model(folder + "/model.pt")->obstacles(), IsEmpty());
}

TEST(OpenModel, AFolderWithOneGgufStandsForIt) {
  const auto tiny = open_model(tiny_folder().write(scratch_folder()));
  const std::string folder = scratch_folder();
  write_gguf(*tiny, folder + "/a.gguf");
  EXPECT_EQ(open_model(folder)->path(), folder + "/a.gguf");
  write_gguf(*tiny, folder + "/b.gguf");
  write_bytes(folder + "/c-00002-of-00002.gguf", "a later part is no model of its own");
  const auto [kind, message] = failure_of([&] { open_model(folder); });
  EXPECT_EQ(kind, ErrorKind::invalid_argument);
  EXPECT_EQ(message, folder + ": expected one GGUF file, found 2; name one: a.gguf, b.gguf");
}

TEST(OpenModel, WhatIsNoModelSaysWhy) {
  const std::string folder = scratch_folder();
  EXPECT_THAT(failure_of([&] { open_model(folder); }).second, HasSubstr("no model here"));
  SafetensorsBytes().floats("x", {1}, {1}).write(folder + "/adapter_model.safetensors");
  EXPECT_THAT(failure_of([&] { open_model(folder); }).second,
              HasSubstr("adapter_model.safetensors"));
  write_bytes(folder + "/note.txt", "hello there, this is text");
  const auto [kind, message] = failure_of([&] { open_model(folder + "/note.txt"); });
  EXPECT_EQ(kind, ErrorKind::unsupported);
  EXPECT_THAT(message, HasSubstr("neither a GGUF nor a safetensors file"));
  fs::create_symlink("nowhere", folder + "/broken");
  EXPECT_THAT(failure_of([&] { open_model(folder + "/broken"); }).second,
              HasSubstr("symbolic link"));
  EXPECT_EQ(failure_of([] { open_model("/dev/null"); }).first, ErrorKind::corrupt);
  write_bytes(folder + "/empty", "");
  EXPECT_EQ(failure_of([&] { open_model(folder + "/empty"); }).first, ErrorKind::unsupported);
}

TEST(OpenModel, Float8FoldersAreMultipliedByTheirScales) {
  const std::string folder = scratch_folder();
  TinyFolder tiny = tiny_folder();
  tiny.config["quantization_config"] = {{"quant_method", "fp8"}, {"weight_block_size", {8, 4}}};
  const std::string q = "model.layers.1.self_attn.q_proj.weight";  // [24, 8]
  tiny.write(folder);
  SafetensorsBytes bytes;
  for (const auto& [name, tensor] : tiny.tensors) {
    if (name != q) bytes.floats(name, tensor.shape, tensor.values);
  }
  bytes.tensor(q, "F8_E4M3", {24, 8}, std::string(24 * 8, '\x40'));  // 2.0
  bytes.floats(q + "_scale_inv", {3, 2}, {1, 2, 3, 4, 5, 6});
  bytes.write(folder + "/model.safetensors");
  const auto model = open_model(folder);
  EXPECT_THAT(model->obstacles(), IsEmpty());
  const std::vector<float> values = model->read_vector(Role::q, 1);
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(values[i], 2.0f * static_cast<float>(1 + i / 64 * 2 + i % 8 / 4)) << i;

  SafetensorsBytes raw;
  for (const auto& [name, tensor] : tiny.tensors) {
    if (name != q) raw.floats(name, tensor.shape, tensor.values);
  }
  raw.tensor(q, "F8_E4M3", {24, 8}, std::string(24 * 8, '\x40'));
  raw.write(folder + "/model.safetensors");
  EXPECT_THAT(open_model(folder)->obstacles(),
              ElementsAre(AllOf(HasSubstr(q), HasSubstr("without a scale"))));
}

// Every oracle of the family opens without a complaint, and both spellings of the config agree.
TEST(OpenModel, OraclesOpenAndBothConfigSpellingsAgree) {
  for (const char* name : {"llama", "llama_tied", "mistral", "qwen2", "qwen3", "qwen3_moe",
                           "mixtral", "gemma2", "gemma3", "olmo2", "phi3", "granite", "smollm3",
                           "gpt_neox", "gpt_oss", "gpt_neox_seq", "deepseek_v3", "qwen3_next"}) {
    SINKSCOPE_REQUIRE_SHARED(folder, std::string("oracles/") + name);
    const auto model = open_model(folder);
    EXPECT_THAT(model->obstacles(), IsEmpty()) << name;
    EXPECT_THAT(model->warnings(), IsEmpty()) << name;
    const HfConfig old = parse_hf_config(read_bytes(folder + "/config_v4.json"), "config_v4.json");
    const HfConfig modern = parse_hf_config(model->config_text(), "config.json");
    EXPECT_EQ(old.spec, modern.spec) << name;
    EXPECT_EQ(old.tied, modern.tied) << name;
    EXPECT_GE(model->spec().norm_eps, 0.002) << name;  // every default is far below
  }
  SINKSCOPE_REQUIRE_SHARED(llama, "oracles/llama");
  const ArchSpec spec = open_model(llama)->spec();
  EXPECT_EQ(spec.head_dim, 24);
  EXPECT_EQ(spec.rope.scaling, RopeScaling::llama3);
  EXPECT_FALSE(spec.tied);
  SINKSCOPE_REQUIRE_SHARED(tied, "oracles/llama_tied");
  EXPECT_TRUE(open_model(tied)->spec().tied);
  EXPECT_EQ(open_model(tied)->spec().n_kv_heads, 1);
  SINKSCOPE_REQUIRE_SHARED(mistral, "oracles/mistral");
  EXPECT_THAT(open_model(mistral)->spec().window, ElementsAre(7, 7, 7));
  SINKSCOPE_REQUIRE_SHARED(qwen2, "oracles/qwen2");
  EXPECT_THAT(open_model(qwen2)->spec().window, ElementsAre(0, 0, 0));
}

// A base model that was saved alone lacks the outer part of its prefix.
TEST(OpenModel, OptOpensWithAnyPartOfItsPrefix) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/opt");
  const auto whole = open_model(folder);
  for (const std::string prefix : {"decoder.", ""}) {
    SafetensorsBytes file;
    for (const TensorInfo& tensor : whole->checkpoint().tensors()) {
      std::vector<float> values(static_cast<std::size_t>(tensor.n_elements()));
      whole->checkpoint().read_rows(whole->checkpoint().find(tensor.name), 0, tensor.n_rows(),
                                    values.data());
      std::string name = tensor.name;
      if (name.starts_with("model.decoder.")) name.replace(0, 14, prefix);
      file.floats(name, tensor.shape, values);
    }
    const std::string base = scratch_folder();
    file.write(base + "/model.safetensors");
    fs::copy_file(folder + "/config.json", base + "/config.json");
    const auto model = open_model(base);
    EXPECT_THAT(model->obstacles(), IsEmpty()) << prefix;
    EXPECT_EQ(model->spec().n_layers, whole->spec().n_layers);
  }
}

// Models of a family that is not known open and say so.
TEST(OpenModel, OraclesOfOtherFamiliesCanBeInspected) {
  for (const char* name : {"qwen4_exp", "deepseek_v4"}) {
    SINKSCOPE_REQUIRE_SHARED(folder, std::string("oracles/") + name);
    const std::string other = scratch_folder() + "/" + name;
    fs::create_directory(other);
    fs::create_symlink(fs::absolute(folder + "/model.safetensors"), other + "/model.safetensors");
    std::ifstream in(folder + "/config.json");
    auto config = nlohmann::json::parse(in);
    config["model_type"] = "martian";
    std::ofstream(other + "/config.json") << config;
    const auto model = open_model(other);
    EXPECT_THAT(model->obstacles(), Contains(HasSubstr("is not known here"))) << name;
    EXPECT_GT(model->spec().n_layers, 0) << name;
    EXPECT_FALSE(model->checkpoint().tensors().empty()) << name;
  }
}

// Every role of every family comes as rows and columns of the size that the spec says, whatever it
// is packed into, and no two roles of a block are the same numbers.
TEST(OpenModel, RolesComeOutOfEveryPacking) {
  for (const char* name :
       {"gpt2", "opt", "gpt_neox", "phi3", "qwen3_moe", "mixtral", "gpt_oss", "gpt_oss_mxfp4",
        "deepseek_v3", "deepseek_v3_fp8", "qwen3_next", "qwen3_5", "mimo_v2_flash", "flint", "axk2",
        "kimi_linear", "deepseek_v4"}) {
    SINKSCOPE_REQUIRE_SHARED(folder, std::string("oracles/") + name);
    const auto model = open_model(folder);
    ASSERT_THAT(model->obstacles(), IsEmpty()) << name;
    const ArchSpec& spec = model->spec();
    for (int layer = 0; layer < spec.n_layers; ++layer) {
      std::set<std::vector<float>> seen;
      for (const Role role : layer_roles(spec, layer)) {
        const std::vector<std::int64_t> shape = expected_shape(role, spec, layer).shape;
        const std::int64_t rows = shape.size() == 1 ? 1 : shape[0];
        ASSERT_EQ(model->rows(role, layer), rows) << name << " " << to_string(role);
        ASSERT_EQ(model->cols(role, layer), shape.back()) << name << " " << to_string(role);
        const std::vector<float> whole = model->read_vector(role, layer);
        // Any part equals that part of the whole.
        std::vector<float> part(static_cast<std::size_t>((rows - rows / 2) * shape.back()));
        model->read_rows(role, layer, rows / 2, rows, part.data());
        EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.end() - std::ssize(part)))
            << name << " " << to_string(role);
        if (rows > 1) {
          EXPECT_TRUE(seen.insert(whole).second) << name << " " << to_string(role);
        }
      }
    }
  }
}

void expect_same_tensors(const ModelFiles& a, const ModelFiles& b) {
  ASSERT_EQ(a.spec().n_layers, b.spec().n_layers);
  std::vector<std::pair<Role, int>> places = {{Role::embed, kNoLayer}, {Role::ln_final, kNoLayer}};
  if (a.spec().has_head) places.emplace_back(Role::unembed, kNoLayer);
  for (int layer = 0; layer < a.spec().n_layers; ++layer) {
    for (const Role role : layer_roles(a.spec())) places.emplace_back(role, layer);
  }
  for (const auto& [role, layer] : places) {
    ASSERT_TRUE(b.has(role, layer)) << to_string(role) << " " << layer;
    ASSERT_EQ(a.rows(role, layer), b.rows(role, layer)) << to_string(role);
    ASSERT_EQ(a.cols(role, layer), b.cols(role, layer)) << to_string(role);
    EXPECT_EQ(a.read_vector(role, layer), b.read_vector(role, layer))
        << to_string(role) << " of layer " << layer;
  }
}

TEST(FieldCases, FC14_GgufAndFolderGiveTheSameTensors) {
  for (const char* name : {"llama", "llama_tied", "mistral", "qwen2", "qwen3"}) {
    SINKSCOPE_REQUIRE_SHARED(folder, std::string("oracles/") + name);
    const auto from_folder = open_model(folder);
    const auto from_gguf = open_model(write_gguf(*from_folder, scratch_folder() + "/model.gguf"));
    ASSERT_EQ(from_gguf->container(), Container::gguf);
    EXPECT_THAT(from_gguf->obstacles(), IsEmpty()) << name;
    expect_same_tensors(*from_folder, *from_gguf);
    EXPECT_EQ(from_gguf->spec().window, from_folder->spec().window) << name;
    EXPECT_EQ(from_gguf->spec().tied, from_folder->spec().tied) << name;
    EXPECT_EQ(from_gguf->spec().rope.theta, from_folder->spec().rope.theta) << name;
    EXPECT_EQ(from_gguf->spec().norm_eps, from_folder->spec().norm_eps) << name;
    EXPECT_EQ(from_gguf->spec().rope.has_divisors, std::string(name) == "llama") << name;
  }
}

// The q rows of a llama GGUF are stored in pairs; any range of them comes back in order.
TEST(FieldCases, FC14_AnyRangeOfPermutedRows) {
  const auto from_folder = open_model(tiny_folder().write(scratch_folder()));
  const auto from_gguf = open_model(write_gguf(*from_folder, scratch_folder() + "/model.gguf"));
  const std::vector<float> whole = from_folder->read_vector(Role::q, 1);
  // The stored bytes are another order, or this test would show nothing.
  std::vector<float> stored(whole.size());
  const Checkpoint& raw = from_gguf->checkpoint();
  raw.read_rows(raw.find("blk.1.attn_q.weight"), 0, 24, stored.data());
  EXPECT_NE(stored, whole);
  for (std::int64_t begin = 0; begin <= 24; ++begin) {
    for (std::int64_t end = begin; end <= 24; ++end) {
      std::vector<float> part(static_cast<std::size_t>((end - begin) * 8));
      from_gguf->read_rows(Role::q, 1, begin, end, part.data());
      ASSERT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + begin * 8))
          << begin << " to " << end;
    }
  }
  float out = 0;
  EXPECT_EQ(failure_of([&] { from_gguf->read_rows(Role::q, 1, 24, 25, &out); }).first,
            ErrorKind::invalid_argument);
}

TEST(FieldCases, FC14_BiasesArePermutedWithTheirRows) {
  TinyFolder tiny = tiny_folder();
  tiny.config["attention_bias"] = true;
  for (int layer = 0; layer < 2; ++layer) {
    const std::string attention = fmt::format("model.layers.{}.self_attn.", layer);
    tiny.add(attention + "q_proj.bias", {24}).add(attention + "k_proj.bias", {12});
    tiny.add(attention + "v_proj.bias", {12}).add(attention + "o_proj.bias", {8});
  }
  const auto from_folder = open_model(tiny.write(scratch_folder()));
  ASSERT_THAT(from_folder->obstacles(), IsEmpty());
  const auto from_gguf = open_model(write_gguf(*from_folder, scratch_folder() + "/model.gguf"));
  expect_same_tensors(*from_folder, *from_gguf);
}

TEST(FieldCases, FC14_OnlyTheRotaryRowsArePermuted) {
  TinyFolder tiny = tiny_folder();
  tiny.config["rope_parameters"]["partial_rotary_factor"] = 0.67;  // 4 of 6
  const auto from_folder = open_model(tiny.write(scratch_folder()));
  ASSERT_EQ(from_folder->spec().rope.rotary_dim, 4);
  const auto from_gguf = open_model(write_gguf(*from_folder, scratch_folder() + "/model.gguf"));
  ASSERT_EQ(from_gguf->spec().rope.rotary_dim, 4);
  expect_same_tensors(*from_folder, *from_gguf);
}

// "VmHWM" of this process in bytes: the most memory it ever had in use.
std::int64_t peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::int64_t kib = 0;
    if (word == "VmHWM:" && status >> kib) return kib * 1024;
  }
  return 0;
}

TEST(FieldCases, FC13_WeightsAreNeverTwiceInMemory) {
  constexpr std::int64_t kRows = 2048, kCols = 2048;  // 8 MiB of BF16 a shard, 16 MiB as float32
  const std::string folder = scratch_folder();
  nlohmann::json index;
  {
    const std::string data(static_cast<std::size_t>(kRows * kCols * 2), '\x3F');
    for (int shard = 1; shard <= 4; ++shard) {
      const std::string name = fmt::format("layers.{}.self_attn.q_proj.weight", shard - 1);
      SafetensorsBytes()
          .tensor(name, "BF16", {kRows, kCols}, data)
          .write(folder + "/" + shard_name(shard, 4));
      index["weight_map"][name] = shard_name(shard, 4);
    }
  }
  write_bytes(folder + "/model.safetensors.index.json", index.dump());
  std::ofstream("/proc/self/clear_refs") << "5";  // forget the peak so far, where that is allowed
  const std::int64_t before = peak_memory();
  std::vector<float> layer(static_cast<std::size_t>(kRows * kCols));
  const auto model = open_model(folder);
  for (int shard = 0; shard < 4; ++shard) {
    model->checkpoint().read_rows(shard, 0, kRows, layer.data());
    EXPECT_EQ(layer.back(), layer.front());
  }
  constexpr std::int64_t kMiB = 1 << 20;
  EXPECT_LT(peak_memory() - before, kRows * kCols * 4 + 6 * kMiB);
  std::stringstream maps;
  maps << std::ifstream("/proc/self/maps").rdbuf();
  EXPECT_THAT(maps.str(), ::testing::Not(HasSubstr(".safetensors")));
}

TEST(FieldCases, FC13_AFileCutAfterOpeningIsAMessageNotASignal) {
  const std::string folder = tiny_folder().write(scratch_folder());
  const auto model = open_model(folder);
  fs::resize_file(folder + "/model.safetensors", 3000);
  const auto [kind, message] = failure_of([&] {
    for (int layer = 0; layer < 2; ++layer) model->read_vector(Role::down, layer);
  });
  EXPECT_EQ(kind, ErrorKind::corrupt);
  EXPECT_THAT(message, HasSubstr("model.safetensors"));
}

}  // namespace
}  // namespace sinkscope
