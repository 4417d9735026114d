// SPDX-License-Identifier: GPL-3.0-or-later
// Tiny random models against the values that transformers computes for them.
#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <fstream>

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

void compare_norms(const H5Reference& got, const H5Reference& want, int n_layers) {
  const struct {
    const char* module;
    const char* tap;
  } block_norms[] = {{"input_layernorm", "ln1.hook_out"},
                     {"post_attention_layernorm", "ln2.hook_out"},
                     {"self_attn.q_norm", "attn.hook_q_norm"},
                     {"self_attn.k_norm", "attn.hook_k_norm"}};
  int compared = 0;
  for (int layer = 0; layer < n_layers; ++layer) {
    for (const auto& [module, tap] : block_norms) {
      const std::string name = "/norm/model.layers." + std::to_string(layer) + "." + module;
      if (!want.has(name)) continue;
      const std::vector<std::int64_t> dims = want.dims(name);
      std::vector<float> expected = want.floats(name);
      if (dims.size() == 3) expected = heads_first(expected, dims[0], dims[1], dims[2]);
      expect_close(layer_of(got, std::string("/run0/taps/") + tap + "/values", layer), expected,
                   kValues, name);
      ++compared;
    }
  }
  EXPECT_GE(compared, 2 * n_layers);
}

// The folder, or the GGUF file in it.
std::unique_ptr<ModelFiles> open_oracle(const std::string& folder) {
  const std::string gguf = folder + "/model.gguf";
  return open_model(fs::exists(gguf) ? gguf : folder);
}

CaptureRequest everything(const H5Reference& expected) {
  std::vector<int> ids;
  for (std::int64_t id : expected.integers("/input_ids")) ids.push_back(static_cast<int>(id));
  CaptureRequest request = request_for(ids);
  request.record.maps = request.record.all = request.record.logits = true;
  return request;
}

void compare_with_expected(const std::string& capture_path, const H5Reference& want, int n_layers) {
  const H5Reference got(capture_path);
  expect_close(got.floats("/run0/residual/stream"), want.floats("/residual"), kValues, "residual");
  expect_close(got.floats("/run0/residual/final_norm"), want.floats("/final_norm"), kValues,
               "final_norm");
  expect_close(got.floats("/run0/attention/pattern"), want.floats("/attention"), kProbabilities,
               "attention");
  expect_close(got.floats("/run0/logits/full"), want.floats("/logits"), kValues, "logits");
  compare_norms(got, want, n_layers);
}

class Oracle : public ::testing::TestWithParam<std::string> {};
class FolderOracle : public Oracle {};  // those that are Hugging Face folders

TEST_P(Oracle, CaptureEqualsExpected) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/" + GetParam());
  const H5Reference want(folder + "/expected.h5");
  const auto model = open_oracle(folder);
  ASSERT_THAT(model->obstacles(), ::testing::IsEmpty());
  compare_with_expected(capture(*model, everything(want)), want, model->spec().n_layers);
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

// The same model as safetensors and as GGUF of F32 tensors gives the same capture to the bit.
TEST_P(FolderOracle, SafetensorsAndGgufGiveTheSameCapture) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/" + GetParam());
  const H5Reference want(folder + "/expected.h5");
  const auto a = open_model(folder);
  const auto b = open_model(write_gguf(*a, scratch_folder() + "/model.gguf"));
  const std::string from_gguf = capture(*b, everything(want));
  // rope_freqs.weight rounds llama3's divisors to float32, so those angles differ in the last bit.
  if (a->spec().rope.scaling == RopeScaling::llama3) {
    compare_with_expected(from_gguf, want, a->spec().n_layers);
  } else {
    EXPECT_EQ(first_difference(capture(*a, everything(want)), from_gguf), "");
  }
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

// bfloat16 arithmetic (8 bits of mantissa, 2^-9 a rounding) stays within 3 % of float32 in norm.
TEST_P(Oracle, Bfloat16StaysNear) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/" + GetParam());
  const H5Reference want(folder + "/expected.h5");
  const auto model = open_oracle(folder);
  CaptureRequest request = everything(want);
  request.dtype = RunDtype::bfloat16;
  const H5Reference got(capture(*model, request));
  EXPECT_LT(relative_error(got.floats("/run0/residual/stream"), want.floats("/residual")), 0.03);
  EXPECT_LT(relative_error(got.floats("/run0/logits/full"), want.floats("/logits")), 0.03);
}

// The plain tensor body of attention gives what the fused one gives.
TEST_P(Oracle, ReferenceKernelEqualsExpected) {
  SINKSCOPE_REQUIRE_SHARED(folder, "oracles/" + GetParam());
  const H5Reference want(folder + "/expected.h5");
  const auto model = open_oracle(folder);
  CaptureRequest request = everything(want);
  request.kernel = "reference";
  compare_with_expected(capture(*model, request), want, model->spec().n_layers);
}

INSTANTIATE_TEST_SUITE_P(Folders, FolderOracle,
                         ::testing::Values("llama", "llama_tied", "mistral", "qwen2", "qwen3"),
                         [](const auto& test) { return test.param; });
INSTANTIATE_TEST_SUITE_P(Models, Oracle,
                         ::testing::Values("llama", "llama_tied", "mistral", "qwen2", "qwen3",
                                           "llama_gguf", "qwen2_gguf"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace sinkscope::test
