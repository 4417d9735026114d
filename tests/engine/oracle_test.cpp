// SPDX-License-Identifier: GPL-3.0-or-later
// Tiny random models against the values that transformers computes for them.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "capture/checkpoint/arch_file.h"
#include "core/error.h"
#include "tests/engine/captured.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/h5_reference.h"
#include "tests/support/shared_files.h"

namespace sinkscope::test {
namespace {

namespace fs = std::filesystem;

struct Tolerance {
  double relative, absolute;
};
constexpr Tolerance kValues{1e-4, 1e-4}, kProbabilities{0, 1e-5};

void expect_close(const std::vector<float>& got, const std::vector<float>& want,
                  Tolerance tolerance, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_LE(std::fabs(got[i] - want[i]),
              tolerance.absolute + tolerance.relative * std::fabs(want[i]))
        << what << " at flat index " << i << ": got " << got[i] << ", expected " << want[i];
}

std::vector<float> layer_of(const H5Reference& file, const std::string& dataset, int row) {
  const std::vector<float> all = file.floats(dataset);
  const auto size = all.size() / static_cast<std::size_t>(file.dims(dataset).front());
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(size) * row;
  return {begin, begin + static_cast<std::ptrdiff_t>(size)};
}

// expected.h5 keeps per-head norms as [T, heads, d], the capture as [heads, T, d].
std::vector<float> heads_first(const std::vector<float>& x, std::int64_t T, std::int64_t heads,
                               std::int64_t d) {
  std::vector<float> out(x.size());
  for (std::int64_t t = 0; t < T; ++t)
    for (std::int64_t h = 0; h < heads; ++h)
      std::copy_n(x.begin() + (t * heads + h) * d, d, out.begin() + (h * T + t) * d);
  return out;
}

// Row of a block in taps/<hook>/values; −1 = it is not recorded there.
int tap_row(const H5Reference& got, const std::string& hook, int layer) {
  const std::string group = "/run0/taps/" + hook;
  if (!got.has(group)) return -1;
  const std::vector<std::int64_t> layers = got.integers(group + "/layers");
  const auto found = std::find(layers.begin(), layers.end(), layer);
  return found == layers.end() ? -1 : static_cast<int>(found - layers.begin());
}

// What is not padding of rows that have the most heads and dims of any layer.
std::vector<float> without_padding(std::vector<float> x) {
  std::erase_if(x, [](float value) { return std::isnan(value); });
  return x;
}

void compare_tap(const H5Reference& got, const std::string& hook, int layer,
                 const std::vector<float>& expected, Tolerance tolerance, const std::string& name) {
  const int row = tap_row(got, hook, layer);
  ASSERT_GE(row, 0) << name << ": no " << hook << " of block " << layer;
  expect_close(without_padding(layer_of(got, "/run0/taps/" + hook + "/values", row)), expected,
               tolerance, name);
}

// The module whose output /norm holds: the weight's name without its last word, and without the
// inner norm of a GatedNorm.
std::string module_of(std::string weight) {
  weight = weight.substr(0, weight.rfind('.'));
  return weight.ends_with(".norm") ? weight.substr(0, weight.size() - 5) : weight;
}

// Where an oracle's norms do not bear the names on disk (Inkling 2).
std::string own_norm_name(const ModelFiles& model, Role role, int layer, std::string name) {
  if (model.spec().depth_block == 0) return name;
  const char* module = role == Role::ln1_k                ? "k_input_layernorm"
                       : role == Role::ln1_v              ? "v_input_layernorm"
                       : role == Role::ln2                ? "post_attention_layernorm"
                       : role == Role::v                  ? "self_attn.v_norm"
                       : model.spec().n_inputs(layer) > 1 ? "q_input_layernorm"
                                                          : "input_layernorm";
  return "/norm/model.layers." + std::to_string(layer) + "." + module;
}

// DeepSeek-V4's modules are called otherwise than their tensors.
std::string module_in_v4(Role role, int layer) {
  const std::string block = "/norm/model.layers." + std::to_string(layer) + ".";
  switch (role) {
    case Role::ln1:
      return block + "input_layernorm";
    case Role::ln2:
      return block + "post_attention_layernorm";
    case Role::q_a_norm:
      return block + "self_attn.q_a_norm";
    case Role::k_norm:
      return block + "self_attn.kv_norm";
    default:
      return block + "self_attn.compressor.kv_norm";
  }
}

void compare_norms(const H5Reference& got, const H5Reference& want, const ModelFiles& model) {
  const std::pair<Role, const char*> norms[] = {{Role::ln1, "ln1.hook_out"},
                                                {Role::ln1_k, "ln1_k.hook_out"},
                                                {Role::ln1_v, "ln1_v.hook_out"},
                                                {Role::ln2, "ln2.hook_out"},
                                                {Role::ln1_post, "ln1_post.hook_out"},
                                                {Role::ln2_post, "ln2_post.hook_out"},
                                                {Role::q_norm, "attn.hook_q_norm"},
                                                {Role::k_norm, "attn.hook_k_norm"},
                                                {Role::q_a_norm, "attn.hook_q_latent"},
                                                {Role::kv_a_norm, "attn.hook_kv_latent"},
                                                {Role::delta_norm, "linear.hook_norm"},
                                                {Role::mix1_norm, "hyper_attn.hook_norm"},
                                                {Role::mix2_norm, "hyper_mlp.hook_norm"},
                                                {Role::compress_norm, "attn.hook_compressed_kv"},
                                                {Role::v, "attn.hook_v_norm"}};
  int compared = 0;
  for (int layer = 0; layer < model.spec().n_layers; ++layer) {
    for (const auto& [role, tap] : norms) {
      if (!model.has(role, layer)) continue;
      std::string name = "/norm/" + module_of(model.tensor_name(role, layer));
      if (model.spec().architecture == "deepseek_v4") name = module_in_v4(role, layer);
      // A delta-net's norm is called linear_attn.norm: its own name ends in .norm.
      if (role == Role::delta_norm && !want.has(name)) name += ".norm";
      if (role == Role::v) {  // its norm has no gain to go by
        if (!model.spec().value_norm) continue;
        if (model.has(Role::q_norm, layer))
          name = "/norm/" + module_of(model.tensor_name(Role::q_norm, layer));
        name.replace(name.rfind('.') + 1, 6, "v_norm");
      }
      name = own_norm_name(model, role, layer, name);
      if (!want.has(name)) continue;  // an oracle of a GGUF file goes by the folder's names
      const std::vector<std::int64_t> dims = want.dims(name);
      std::vector<float> expected = want.floats(name);
      if (dims.size() == 3) expected = heads_first(expected, dims[0], dims[1], dims[2]);
      compare_tap(got, tap, layer, expected, kValues, name);
      ++compared;
    }
  }
  if (model.container() == Container::safetensors) {
    EXPECT_GE(compared, 2 * model.spec().n_layers);
  }
}

// Datasets of one block each: /router/3 and its like.
void compare_blocks(const H5Reference& got, const H5Reference& want, const ModelFiles& model) {
  const struct {
    const char* group;
    const char* tap;
    Tolerance tolerance;
  } sites[] = {{"/router/", "mlp.hook_router", kProbabilities},
               {"/router_logits/", "mlp.hook_router_logits", kValues},
               {"/shared_expert_gate/", "mlp.hook_shared_gate", kValues},
               {"/attn_gate/", "attn.hook_gate", kValues}};
  for (int layer = 0; want.has("/per_layer_add") && layer < model.spec().n_layers; ++layer)
    compare_tap(got, "hook_per_layer_add", layer, layer_of(want, "/per_layer_add", layer), kValues,
                "per_layer_add");
  for (int layer = 0; layer < model.spec().n_layers; ++layer) {
    for (const auto& [group, tap, tolerance] : sites) {
      const std::string name = group + std::to_string(layer);
      EXPECT_EQ(want.has(name), tap_row(got, tap, layer) >= 0) << name;
      if (!want.has(name)) continue;
      std::vector<float> expected = want.floats(name);
      const std::int64_t T = want.dims(name)[0], heads = model.spec().n_heads;
      if (std::string(tap) == "attn.hook_gate")
        expected = heads_first(expected, T, heads, model.spec().d_value_of(layer));
      compare_tap(got, tap, layer, expected, tolerance, name);
    }
    for (const auto& [role, tap] :
         {std::pair{Role::ln1, "ln1.hook_gate"}, std::pair{Role::ln2, "ln2.hook_gate"}}) {
      if (!model.has(role, layer)) continue;
      const std::string name = "/norm_gate/" + module_of(model.tensor_name(role, layer));
      EXPECT_EQ(want.has(name), tap_row(got, tap, layer) >= 0) << name;
      if (want.has(name)) compare_tap(got, tap, layer, want.floats(name), kValues, name);
    }
  }
}

// Several residual streams: how they are mixed and added to, what sub-layers put out, n-grams.
void compare_streams(const H5Reference& got, const H5Reference& want, const ModelFiles& model) {
  const int L = model.spec().n_layers;
  const std::pair<const char*, const char*> places[] = {{"attn", "hyper_attn"},
                                                        {"mlp", "hyper_mlp"}};
  int compared = 0;
  const auto compare_place = [&](const std::string& site, const std::string& hook, int layer) {
    for (const char* part : {"gate", "pre", "mixed", "inject", "post", "comb"}) {
      const std::string name = "/hyper/" + site + "/" + part;
      const std::string tap = hook + ".hook_" + part;
      ASSERT_EQ(want.has(name), tap_row(got, tap, layer) >= 0) << name;
      if (!want.has(name)) continue;
      compare_tap(got, tap, layer, want.floats(name), kValues, name);
      ++compared;
    }
  };
  for (int layer = 0; layer < L; ++layer) {
    for (const auto& [half, hook] : places)
      compare_place(std::to_string(layer) + "." + half, hook, layer);
    compare_tap(got, "hook_attn_out", layer, layer_of(want, "/delta", 2 * layer), kValues, "delta");
    compare_tap(got, "hook_mlp_out", layer, layer_of(want, "/delta", 2 * layer + 1), kValues,
                "delta");
    const std::string add = "/ple_add/" + std::to_string(layer);
    EXPECT_EQ(want.has(add), tap_row(got, "hook_ple_add", layer) >= 0) << add;
    if (want.has(add)) compare_tap(got, "hook_ple_add", layer, want.floats(add), kValues, add);
  }
  compare_place("final", "hyper_final", -1);
  EXPECT_GE(compared, 6 * L + 2);
  const std::vector<std::int64_t> dims = got.dims("/run0/residual/stream");
  EXPECT_EQ(dims, want.dims("/residual"));  // [S, T, N, D]
}

// Keys that stand for a window each: their maps, and what is left of a row beside tokens and sink.
void compare_compressed(const H5Reference& got, const H5Reference& want, const ModelFiles& model) {
  const std::vector<std::int64_t> dims = got.dims("/run0/attention/compressed_mass");  // [A, H, T]
  const std::vector<float> mass = got.floats("/run0/attention/compressed_mass");
  const auto size = static_cast<std::size_t>(dims[1] * dims[2]);
  for (int layer = 0; layer < model.spec().n_layers; ++layer) {
    const std::string name = "/attention_compressed/" + std::to_string(layer);
    ASSERT_EQ(want.has(name), tap_row(got, "attn.hook_pattern_compressed", layer) >= 0) << name;
    std::vector<float> sums(size, 0.0f);
    if (want.has(name)) {
      const std::vector<float> rows = want.floats(name);
      compare_tap(got, "attn.hook_pattern_compressed", layer, rows, kProbabilities, name);
      const auto width = static_cast<std::size_t>(want.dims(name)[2]);
      for (std::size_t i = 0; i < rows.size(); ++i) sums[i / width] += rows[i];
    }
    const auto begin = mass.begin() + static_cast<std::ptrdiff_t>(size) * layer;
    expect_close({begin, begin + static_cast<std::ptrdiff_t>(size)}, sums, kProbabilities,
                 "compressed_mass");
  }
}

// The folder, or the GGUF file in it.
std::unique_ptr<ModelFiles> open_oracle(const std::string& folder) {
  const std::string gguf = folder + "/model.gguf";
  return open_model(fs::exists(gguf) ? gguf : folder);
}

// An encoder's oracle holds its last hidden state in place of logits.
bool has_logits(const H5Reference& expected) { return !expected.has("/residual_prenorm"); }

CaptureRequest everything(const H5Reference& expected) {
  std::vector<int> ids;
  for (std::int64_t id : expected.integers("/input_ids")) ids.push_back(static_cast<int>(id));
  CaptureRequest request = request_for(ids);
  request.record.maps = request.record.all = true;
  request.record.logits = has_logits(expected);
  return request;
}

// Every query sees every key; columns sum over all of them; sums before the norms of the stream.
void compare_encoder(const H5Reference& got, const H5Reference& want) {
  expect_close(got.floats("/run0/residual/prenorm"), want.floats("/residual_prenorm"), kValues,
               "prenorm");
  const std::vector<std::int64_t> dims = want.dims("/attention");  // [L, H, T, T]
  const auto T = static_cast<std::size_t>(dims[3]);
  for (const std::int64_t n : got.integers("/run0/attention/visible"))
    ASSERT_EQ(n, static_cast<std::int64_t>(T));
  const std::vector<float> maps = want.floats("/attention");
  std::vector<float> mass(maps.size() / T);
  for (std::size_t i = 0; i < maps.size(); ++i) mass[i / (T * T) * T + i % T] += maps[i];
  expect_close(got.floats("/run0/attention/key_mass"), mass, {0, 1e-4}, "key_mass");
}

// Attention over depth: what the halves put out, the closed sums, and every mix with its weights.
void compare_depth(const H5Reference& got, const H5Reference& want, const ModelFiles& model) {
  for (int layer = 0; layer < model.spec().n_layers; ++layer) {
    compare_tap(got, "hook_attn_out", layer, layer_of(want, "/delta", 2 * layer), kValues, "delta");
    compare_tap(got, "hook_mlp_out", layer, layer_of(want, "/delta", 2 * layer + 1), kValues,
                "delta");
  }
  expect_close(got.floats("/run0/residual/block_states"), want.floats("/block_states"), kValues,
               "block_states");
  std::vector<double> blocks;
  for (const int layer : got.ints("/run0/residual/block_layers")) blocks.push_back(layer);
  EXPECT_EQ(blocks, want.numbers("/block_states", "closed_by_layer"));
  int n_rows = 0;
  for (const std::string& site : want.children("/attnres")) {
    const bool is_final = site == "final";
    const int layer = is_final ? -1 : std::stoi(site);
    const std::string hook = "depth_" + (is_final ? site : site.substr(site.find('.') + 1));
    compare_tap(got, hook + ".hook_weights", layer, want.floats("/attnres/" + site + "/weights"),
                kProbabilities, site);
    compare_tap(got, hook + ".hook_mixed", layer, want.floats("/attnres/" + site + "/mixed"),
                kValues, site);
    ++n_rows;
  }
  EXPECT_EQ(n_rows,
            2 * model.spec().n_layers);  // no mix before the first attention, one at the end
}

void compare_with_expected(const std::string& capture_path, const H5Reference& want,
                           const ModelFiles& model) {
  const H5Reference got(capture_path);
  expect_close(got.floats("/run0/residual/stream"), want.floats("/residual"), kValues, "residual");
  expect_close(got.floats("/run0/residual/final_norm"), want.floats("/final_norm"), kValues,
               "final_norm");
  expect_close(got.floats("/run0/attention/pattern"), want.floats("/attention"), kProbabilities,
               "attention");
  if (has_logits(want))
    expect_close(got.floats("/run0/logits/full"), want.floats("/logits"), kValues, "logits");
  else
    compare_encoder(got, want);
  if (want.has("/attention_sink"))
    expect_close(got.floats("/run0/attention/null_mass"), want.floats("/attention_sink"),
                 kProbabilities, "attention_sink");
  if (want.has("/attnres")) compare_depth(got, want, model);
  compare_norms(got, want, model);
  compare_blocks(got, want, model);
  if (want.has("/hyper/final/mixed")) compare_streams(got, want, model);
  if (want.has("/attention_compressed/1")) compare_compressed(got, want, model);
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

// A model opened by its own description in place of config.json: the same capture to the bit.
TEST_P(Oracle, OpensByItsOwnDescription) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/" + GetParam());
  const auto a = open_oracle(folder);
  if (a->container() == Container::gguf) GTEST_SKIP() << "--arch is for safetensors";
  const std::string arch = scratch_folder() + "/arch.json";
  std::ofstream(arch) << arch_to_json(*a);
  const auto b = open_model(folder, {.ignore_index = false, .arch_file = arch});
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

// GGUF has no key for GPT-OSS's clamp: what is released has 7.
TEST(GgufOracleGptOss, SafetensorsAndGgufGiveTheSameCapture) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/gpt_oss");
  const std::string changed = scratch_folder() + "/model";
  fs::create_directory(changed);
  fs::create_symlink(fs::absolute(folder + "/model.safetensors"), changed + "/model.safetensors");
  std::ifstream in(folder + "/config.json");
  auto config = nlohmann::json::parse(in);
  config["swiglu_limit"] = 7.0;
  std::ofstream(changed + "/config.json") << config;
  const auto a = open_model(changed);
  const auto b = open_model(write_gguf(*a, scratch_folder() + "/model.gguf"));
  ASSERT_THAT(b->obstacles(), ::testing::IsEmpty());
  EXPECT_EQ(b->spec().moe, a->spec().moe);
  const CaptureRequest request = everything(H5Reference(folder + "/expected.h5"));
  const H5Reference x(capture(*a, request)), y(capture(*b, request));
  for (const char* name : {"/run0/residual/stream", "/run0/logits/full"})
    expect_close(y.floats(name), x.floats(name), kValues, name);
  expect_close(y.floats("/run0/attention/null_mass"), x.floats("/run0/attention/null_mass"),
               kProbabilities, "null_mass");
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

INSTANTIATE_TEST_SUITE_P(Folders, FolderOracle, ::testing::ValuesIn(kBothSpellings),
                         [](const auto& test) { return test.param; });
INSTANTIATE_TEST_SUITE_P(Folders, GgufOracle,
                         ::testing::Values("llama", "llama_tied", "mistral", "qwen2", "qwen3",
                                           "mixtral", "qwen3_moe", "gpt2", "gpt_neox",
                                           "gpt_neox_seq", "gemma2", "gemma3", "olmo2", "olmo3",
                                           "phi3", "granite"),
                         [](const auto& test) { return test.param; });
INSTANTIATE_TEST_SUITE_P(Models, Oracle, ::testing::ValuesIn(all_models()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace sinkscope::test
