// SPDX-License-Identifier: GPL-3.0-or-later
// A model that has something natively against one that was edited to have it, and the reverse: the
// edit put in gives the native model, the edit that takes it out gives the plain one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <random>

#include "capture/checkpoint/arch_file.h"
#include "tests/engine/captured.h"
#include "tests/engine/what_if_support.h"
#include "tests/support/safetensors_bytes.h"
#include "tests/support/shared_files.h"
#include "tests/support/tiny_folder.h"

namespace sinkscope::test {
namespace {

// Losses and KL of `a` under an edit are those of `b` as it is, and the edit does something.
void expect_becomes(const ModelFiles& a, const std::string& edit, const ModelFiles& b) {
  SCOPED_TRACE(edit);
  const Evaluation edited = evaluate(a, {kEditedIds}, {edit});
  const Evaluation native = evaluate(b, {kEditedIds}, {"[]"});
  double moved = 0;
  for (std::size_t t = 0; t < native.loss[0][0].size(); ++t) {
    EXPECT_NEAR(edited.loss[1][0][t], native.loss[0][0][t],
                2e-6 * std::max(1.0f, native.loss[0][0][t]))
        << t;
    moved = std::max(moved, std::abs(double{edited.loss[0][0][t]} - double{native.loss[0][0][t]}));
  }
  EXPECT_GT(moved, 1e-4);
}
void expect_becomes(const std::string& a, const std::string& edit, const std::string& b) {
  expect_becomes(*open_model(a), edit, *open_model(b));
}

// A folder of the family with weights that make every head and layer differ.
TinyFolder random_folder(const std::string& family, std::mt19937& random) {
  TinyFolder tiny = tiny_folder(family);
  std::normal_distribution<float> normal;
  for (auto& [name, tensor] : tiny.tensors)
    for (float& value : tensor.values)
      value =
          name.find("norm") != std::string::npos ? 1 + .3f * normal(random) : .5f * normal(random);
  return tiny;
}

TEST(NativeEdits, PreAffineInAndOut) {
  std::mt19937 random(11);
  std::normal_distribution<float> normal;
  TinyFolder tiny = random_folder("llama", random);
  const std::string plain = tiny.write(scratch_folder());
  SafetensorsBytes weights;
  const auto add = [&](const std::string& native, const std::string& edit) {
    TinyTensor gain{{8}, {}};
    for (int i = 0; i < 8; ++i) gain.values.push_back(std::exp(.7f * normal(random)));
    tiny.tensors[native] = gain;
    weights.floats(edit, gain.shape, gain.values);
  };
  for (int layer = 0; layer < 2; ++layer) {
    const std::string block = std::to_string(layer);
    add("model.layers." + block + ".input_layernorm.pre_affine",
        "blocks." + block + ".ln1.pre_gain");
    add("model.layers." + block + ".post_attention_layernorm.pre_affine",
        "blocks." + block + ".ln2.pre_gain");
  }
  add("model.norm.pre_affine", "ln_final.pre_gain");
  tiny.config["pre_affine"] = true;
  const std::string native = tiny.write(scratch_folder());
  const std::string file = scratch_folder() + "/gains.safetensors";
  weights.write(file);
  expect_becomes(plain, R"({"edit":"norm.replace","with":"preaffine","weights":")" + file + "\"}",
                 native);
  expect_becomes(native, R"({"edit":"norm.replace","with":"preaffine"})", plain);
}

// The family has no gates of its own: an architecture file names them.
TEST(NativeEdits, GatedNormInAndOut) {
  constexpr int kRank = 3, kWidth = 8;
  std::mt19937 random(13);
  std::normal_distribution<float> normal;
  TinyFolder tiny = random_folder("llama", random);
  const std::string plain = tiny.write(scratch_folder());
  SafetensorsBytes weights;
  nlohmann::json down = nlohmann::json::array(), up = nlohmann::json::array();
  for (int layer = 0; layer < 2; ++layer) {
    const std::string block = std::to_string(layer);
    const auto add = [&](const std::string& part, std::vector<std::int64_t> shape,
                         nlohmann::json& names) {
      TinyTensor tensor{std::move(shape), {}};
      for (int i = 0; i < kRank * kWidth; ++i) tensor.values.push_back(normal(random));
      const std::string name = "model.layers." + block + ".input_layernorm." + part;
      names.push_back(name);
      weights.floats("blocks." + block + ".ln1.gate_" + part, tensor.shape, tensor.values);
      tiny.tensors[name] = std::move(tensor);
    };
    add("down", {kRank, kWidth}, down);
    add("up", {kWidth, kRank}, up);
  }
  const std::string native = tiny.write(scratch_folder());
  auto arch = arch_to_json(*open_model(plain));
  arch["spec"]["norm_gate_rank"] = kRank;
  arch["roles"]["ln1_gate_down"] = down;
  arch["roles"]["ln1_gate_up"] = up;
  const std::string description = scratch_folder() + "/arch.json";
  std::ofstream(description) << arch;
  const std::string file = scratch_folder() + "/gates.safetensors";
  weights.write(file);
  const auto gated = open_model(native, {.ignore_index = false, .arch_file = description});
  ASSERT_TRUE(gated->obstacles().empty()) << gated->obstacles().front();
  const auto without = open_model(plain);
  expect_becomes(
      *without,
      R"({"edit":"norm.replace","with":"gatednorm","norms":["ln1"],"weights":")" + file + "\"}",
      *gated);
  expect_becomes(*gated, R"({"edit":"norm.replace","with":"rmsnorm","norms":["ln1"]})", *without);
}

// A logit of its own for every head of both layers, as "self_attn.sinks" and as eight edits.
TEST(NativeEdits, SinkLogitsInAndOut) {
  std::mt19937 random(12);
  TinyFolder tiny = random_folder("granite", random);
  const std::string plain = tiny.write(scratch_folder());
  std::normal_distribution<float> normal(1.0f, 1.0f);
  nlohmann::json edits = nlohmann::json::array();
  for (int layer = 0; layer < 2; ++layer) {
    TinyTensor sinks{{4}, {}};
    for (int head = 0; head < 4; ++head) {
      sinks.values.push_back(normal(random));
      edits.push_back({{"edit", "attention.normalizer"},
                       {"kind", "sink_logit"},
                       {"b", sinks.values.back()},
                       {"layers", std::to_string(layer)},
                       {"heads", std::to_string(head)}});
    }
    tiny.tensors["model.layers." + std::to_string(layer) + ".self_attn.sinks"] = sinks;
  }
  tiny.config["model_type"] = "granite_swa";
  const std::string native = tiny.write(scratch_folder());
  expect_becomes(plain, edits.dump(), native);
  expect_becomes(native, R"({"edit":"attention.normalizer","kind":"softmax"})", plain);
}

}  // namespace
}  // namespace sinkscope::test
