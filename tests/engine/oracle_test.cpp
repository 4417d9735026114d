// SPDX-License-Identifier: GPL-3.0-or-later
// Tiny random models against the values that transformers computes for them.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "capture/checkpoint/arch_file.h"
#include "tests/engine/captured.h"
#include "tests/engine/oracle_compare.h"
#include "tests/engine/plain_loops.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/shared_files.h"

namespace sinkscope::test {
namespace {

namespace fs = std::filesystem;

// Bytes of all blocks as float32.
std::int64_t bytes_of_blocks(const ModelFiles& model) {
  std::int64_t bytes = 0;
  for (int layer = 0; layer < model.spec().n_layers; ++layer)
    for (int r = 0; r <= static_cast<int>(Role::last); ++r)
      if (const auto role = static_cast<Role>(r); is_layer_role(role) && model.has(role, layer))
        bytes += 4 * model.rows(role, layer) * model.cols(role, layer);
  return bytes;
}

class Oracle : public ::testing::TestWithParam<std::string> {};
class FolderOracle : public Oracle {};  // those that are folders with a config in both spellings
class GgufOracle : public Oracle {};    // folders of families that GGUF has names for

TEST_P(Oracle, CaptureEqualsExpected) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/" + GetParam());
  const H5Reference want(folder + "/expected.h5");
  const auto model = open_oracle(folder);
  ASSERT_THAT(model->obstacles(), ::testing::IsEmpty());
  compare_with_expected(capture(*model, everything(want)), want, *model);
}

// The same folder with the config as transformers 4 wrote it: the same capture to the bit.
TEST_P(FolderOracle, BothConfigSpellingsGiveTheSameCapture) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/" + GetParam());
  const std::string old = scratch_folder() + "/model";
  fs::create_directory(old);
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".safetensors" ||
        entry.path().filename() == "model.safetensors.index.json")
      fs::create_symlink(fs::absolute(entry.path()), fs::path(old) / entry.path().filename());
  fs::copy_file(folder + "/config_v4.json", old + "/config.json");
  const H5Reference want(folder + "/expected.h5");
  const auto a = open_model(folder), b = open_model(old);
  EXPECT_EQ(first_difference(capture(*a, everything(want)), capture(*b, everything(want))), "");
}

std::unique_ptr<ModelFiles> opened_by_its_description(const ModelFiles& model) {
  const std::string arch = scratch_folder() + "/arch.json";
  std::ofstream(arch) << arch_to_json(model);
  return open_model(model.path(), {.ignore_index = false, .arch_file = arch});
}

// A model opened by its own description in place of config.json: the same capture to the bit.
TEST_P(Oracle, OpensByItsOwnDescription) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/" + GetParam());
  const auto a = open_oracle(folder);
  const auto b = opened_by_its_description(*a);
  ASSERT_THAT(b->obstacles(), ::testing::IsEmpty());
  EXPECT_EQ(a->spec(), b->spec());
  const H5Reference want(folder + "/expected.h5");
  EXPECT_EQ(first_difference(capture(*a, everything(want)), capture(*b, everything(want))), "");
}

// The same model as safetensors and as GGUF of F32 tensors gives the same capture to the bit.
TEST_P(GgufOracle, SafetensorsAndGgufGiveTheSameCapture) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/" + GetParam());
  const H5Reference want(folder + "/expected.h5");
  const auto a = open_model(folder);
  const auto b = open_model(write_gguf(*a, scratch_folder() + "/model.gguf"));
  const std::string from_gguf = capture(*b, everything(want));
  ASSERT_THAT(b->obstacles(), ::testing::IsEmpty());
  // GGUF rounds llama3's divisors and yarn's factor to float32, so those angles differ in the last
  // bit.
  const RopeScaling scaling = a->spec().rope.scaling;
  // Norms 1 + w are stored as what they multiply by, so their raw gains differ.
  if (scaling == RopeScaling::llama3 || scaling == RopeScaling::yarn ||
      a->spec().norm_offset != 0) {
    compare_with_expected(from_gguf, want, *a);
  } else {
    EXPECT_EQ(first_difference(capture(*a, everything(want)), from_gguf), "");
  }
}

// The same for GGUF files by their own description: packings, pairs and folded gains are in it.
TEST_P(GgufOracle, OpensByItsOwnDescription) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/" + GetParam());
  const H5Reference want(folder + "/expected.h5");
  const auto a = open_model(write_gguf(*open_model(folder), scratch_folder() + "/model.gguf"));
  const auto b = opened_by_its_description(*a);
  ASSERT_THAT(b->obstacles(), ::testing::IsEmpty());
  EXPECT_EQ(a->spec(), b->spec());
  EXPECT_EQ(first_difference(capture(*a, everything(want)), capture(*b, everything(want))), "");
}

void expect_near_capture(const std::string& got_path, const std::string& want_path) {
  const H5Reference got(got_path), want(want_path);
  for (const char* name : {"/run0/residual/stream", "/run0/logits/full"})
    expect_close(got.floats(name), want.floats(name), kValues, name);
  for (const char* name : {"/run0/attention/pattern", "/run0/attention/null_mass"})
    expect_close(got.floats(name), want.floats(name), kProbabilities, name);
}

// What GGUF has no key for is as in released models: GPT-OSS's clamp is 7, every 4th layer of
// SmolLM3 does without positions, DeepSeek's mscale is its mscale_all_dim.
TEST(GgufOracleKeys, SafetensorsAndGgufGiveTheSameCaptureAsFarAsKeysGo) {
  const std::pair<const char*, nlohmann::json> changes[] = {
      {"gpt_oss", {{"swiglu_limit", 7.0}}},
      {"smollm3", {{"no_rope_layers", nullptr}}},
      {"deepseek_v3", {{"rope_parameters", {{"mscale", 0.7}}}}}};
  for (const auto& [name, change] : changes)
    for (const GgufForm form : {GgufForm::current, GgufForm::old}) {
      SCOPED_TRACE(name);
      SINKSCOPE_REQUIRE_SHARED(folder, std::string("oracles/") + name);
      const auto a =
          with_config(folder, [&](nlohmann::json& config) { config.merge_patch(change); });
      ASSERT_THAT(a->obstacles(), ::testing::IsEmpty());
      const auto b = open_model(write_gguf(*a, scratch_folder() + "/model.gguf", form));
      ASSERT_THAT(b->obstacles(), ::testing::IsEmpty());
      EXPECT_EQ(b->spec().moe, a->spec().moe);
      EXPECT_EQ(b->spec().latent, a->spec().latent);
      const CaptureRequest request = everything(H5Reference(folder + "/expected.h5"));
      const std::string from_gguf = capture(*b, request);
      expect_near_capture(from_gguf, capture(*a, request));
      const auto c = opened_by_its_description(*b);
      ASSERT_THAT(c->obstacles(), ::testing::IsEmpty());
      EXPECT_EQ(first_difference(from_gguf, capture(*c, request)), "");
    }
}

// Projections of delta-nets in one tensor, as converters wrote them at first.
TEST(GgufOracleKeys, OldFilesOfQwen3NextGiveTheSameCapture) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/qwen3_next");
  const H5Reference want(folder + "/expected.h5");
  const auto a = open_model(folder);
  const auto b = open_model(write_gguf(*a, scratch_folder() + "/model.gguf", GgufForm::old));
  ASSERT_THAT(b->obstacles(), ::testing::IsEmpty());
  compare_with_expected(capture(*b, everything(want)), want, *a);
}

// ‖got − want‖ / ‖want‖.
double relative_error(const std::vector<float>& got, const std::vector<float>& want) {
  EXPECT_EQ(got.size(), want.size());
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    difference += std::pow(static_cast<double>(got[i]) - want[i], 2);
    size += std::pow(static_cast<double>(want[i]), 2);
  }
  return std::sqrt(difference / size);
}

// bfloat16 arithmetic (8 bits of mantissa, 2^-9 a rounding) stays within 3 % of float32 in norm;
// with a mixture of experts within 15 %, since a rounded router sends some tokens elsewhere.
TEST_P(Oracle, Bfloat16StaysNear) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/" + GetParam());
  const H5Reference want(folder + "/expected.h5");
  const auto model = open_oracle(folder);
  CaptureRequest request = everything(want);
  request.dtype = RunDtype::bfloat16;
  const H5Reference got(capture(*model, request));
  const double most = model->spec().moe.n_experts > 0 ? 0.15 : 0.03;
  EXPECT_LT(relative_error(got.floats("/run0/residual/stream"), want.floats("/residual")), most);
  if (has_logits(want)) {
    EXPECT_LT(relative_error(got.floats("/run0/logits/full"), want.floats("/logits")), most);
  }
}

// Five prompts in groups of one, the oracle's own first, in the middle and last: with no room for
// weights, every block is dropped and read again; with some, one block is kept; with plenty, all.
TEST_P(Oracle, GroupsOfPromptsEqualExpectedWhateverIsKept) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/" + GetParam());
  const H5Reference want(folder + "/expected.h5");
  CaptureRequest request = everything(want);
  RunInput other = request.runs.front();
  std::reverse(other.token_ids.begin(), other.token_ids.end());
  other.token_ids.resize(9);
  other.token_text.resize(9);
  request.runs = {request.runs[0], other, request.runs[0], other, request.runs[0]};
  request.activation_budget = 1;
  const auto alone = open_oracle(folder);
  const std::int64_t blocks = bytes_of_blocks(*alone);
  for (const std::int64_t budget : {std::int64_t{0}, blocks * 9 / 10, 100 * blocks}) {
    SCOPED_TRACE(budget);
    request.weight_budget = budget;
    const auto model = open_oracle(folder);
    const std::string got = capture(*model, request);
    for (const int run : {0, 2, 4}) compare_with_expected(got, want, *model, run);
  }
}

// 80 tokens: more than one chunk of linear attention.
TEST(LongOracle, LinearAttentionAcrossChunksEqualsExpected) {
  for (const char* name : {"qwen3_next", "qwen3_5", "kimi_linear"}) {
    SINKSCOPE_REQUIRE_SHARED(folder, std::string("oracles/") + name);
    SCOPED_TRACE(name);
    const H5Reference want(folder + "/expected_t80.h5");
    const auto model = open_oracle(folder);
    compare_with_expected(capture(*model, everything(want)), want, *model);
  }
}

// The plain tensor body of attention gives what the fused one gives.
TEST_P(Oracle, ReferenceKernelEqualsExpected) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/" + GetParam());
  const H5Reference want(folder + "/expected.h5");
  const auto model = open_oracle(folder);
  CaptureRequest request = everything(want);
  request.kernel = "reference";
  compare_with_expected(capture(*model, request), want, *model);
}

// Every folder here has a config.json; those without rotary positions have no second spelling.
const std::vector<std::string> kBothSpellings = {
    "llama",   "llama_tied", "mistral",      "qwen2",   "qwen3",       "qwen3_moe",
    "mixtral", "gpt_neox",   "gpt_neox_seq", "gemma2",  "gemma3",      "olmo2",
    "phi3",    "granite",    "smollm3",      "gpt_oss", "deepseek_v3", "qwen3_next"};
const std::vector<std::string> kOneSpelling = {
    "gpt2",       "opt",         "olmo3",         "ministral3", "gpt_oss_mxfp4", "deepseek_v3_fp8",
    "qwen3_5",    "qwen3_5_moe", "mimo_v2_flash", "inkling2",   "granite_swa",   "flint",
    "axk2",       "kimi_linear", "bert",          "gemma4",     "gemma4_moe",    "qwen4_exp",
    "deepseek_v4"};

std::vector<std::string> all_models() {
  std::vector<std::string> all = kBothSpellings;
  all.insert(all.end(), kOneSpelling.begin(), kOneSpelling.end());
  all.insert(all.end(), {"llama_gguf", "qwen2_gguf"});
  return all;
}

// No folder is forgotten: neither a model with its numbers, nor one with a second config.
TEST(OracleLists, NameEveryFolderThatIsThere) {
  SINKSCOPE_REQUIRE_SHARED(root, "oracles");
  const std::vector<std::string> listed = all_models();
  for (const auto& entry : fs::directory_iterator(root)) {
    const std::string name = entry.path().filename().string();
    if (!fs::exists(entry.path() / "expected.h5") || name.starts_with("lab_") ||
        name == "smollm2")  // trained models: trained_models_test
      continue;
    EXPECT_NE(std::find(listed.begin(), listed.end(), name), listed.end()) << name;
    const bool has_both =
        std::find(kBothSpellings.begin(), kBothSpellings.end(), name) != kBothSpellings.end();
    EXPECT_EQ(fs::exists(entry.path() / "config_v4.json"), has_both) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Folders, FolderOracle, ::testing::ValuesIn(kBothSpellings),
                         [](const auto& test) { return test.param; });
INSTANTIATE_TEST_SUITE_P(Folders, GgufOracle,
                         ::testing::Values("llama", "llama_tied", "mistral", "qwen2", "qwen3",
                                           "mixtral", "qwen3_moe", "gpt2", "gpt_neox",
                                           "gpt_neox_seq", "gemma2", "gemma3", "olmo2", "olmo3",
                                           "phi3", "granite", "qwen3_next", "bert", "ministral3"),
                         [](const auto& test) { return test.param; });
INSTANTIATE_TEST_SUITE_P(Models, Oracle, ::testing::ValuesIn(all_models()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace sinkscope::test
