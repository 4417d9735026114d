// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/engine/oracle_compare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "tests/engine/captured.h"

namespace sinkscope::test {
namespace fs = std::filesystem;

std::vector<float> row_of(const std::vector<float>& all, std::size_t n_rows, int row) {
  const auto size = static_cast<std::ptrdiff_t>(all.size() / n_rows);
  return {all.begin() + size * row, all.begin() + size * (row + 1)};
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

void expect_close(const std::vector<float>& got, const std::vector<float>& want,
                  Tolerance tolerance, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_LE(std::fabs(got[i] - want[i]),
              tolerance.absolute + tolerance.relative * std::fabs(want[i]))
        << what << " at flat index " << i << ": got " << got[i] << ", expected " << want[i];
}

// Row of a block in taps/<hook>/values; −1 = it is not recorded there.
int tap_row(const RecordedRun& got, const std::string& hook, int layer) {
  const std::string group = "/taps/" + hook;
  if (!got.has(group)) return -1;
  const std::vector<std::int64_t> layers = got.integers(group + "/layers");
  const auto found = std::find(layers.begin(), layers.end(), layer);
  return found == layers.end() ? -1 : static_cast<int>(found - layers.begin());
}

// Without the padding of rows that have the most heads and dims of any layer.
std::vector<float> tap_values(const RecordedRun& got, const std::string& hook, int layer) {
  const std::string name = "/taps/" + hook + "/values";
  std::vector<float> x = row_of(got.floats(name), static_cast<std::size_t>(got.dims(name).front()),
                                tap_row(got, hook, layer));
  std::erase_if(x, [](float value) { return std::isnan(value); });
  return x;
}

void compare_tap(const RecordedRun& got, const std::string& hook, int layer,
                 const std::vector<float>& expected, Tolerance tolerance, const std::string& name) {
  const int row = tap_row(got, hook, layer);
  ASSERT_GE(row, 0) << name << ": no " << hook << " of block " << layer;
  expect_close(tap_values(got, hook, layer), expected, tolerance, name);
}

// The folder, or the GGUF file in it.
std::unique_ptr<ModelFiles> open_oracle(const std::string& folder) {
  const std::string gguf = folder + "/model.gguf";
  return open_model(fs::exists(gguf) ? gguf : folder);
}

// An encoder's oracle holds its last hidden state in place of logits.
bool has_logits(const H5Reference& expected) { return !expected.has("/residual_prenorm"); }

CaptureRequest everything(const H5Reference& expected) {
  CaptureRequest request = request_for(expected.ints("/input_ids"));
  request.record.maps = request.record.all = true;
  request.record.logits = has_logits(expected);
  return request;
}

namespace {

std::vector<float> layer_of(const H5Reference& file, const std::string& dataset, int row) {
  return row_of(file.floats(dataset), static_cast<std::size_t>(file.dims(dataset).front()), row);
}

// The module that a norm's weight belongs to, a GatedNorm without its inner norm.
std::string module_of(std::string weight) {
  weight = weight.substr(0, weight.rfind('.'));
  return weight.ends_with(".norm") ? weight.substr(0, weight.size() - 5) : weight;
}

// Datasets of one block each: /router/3 and its like.
void compare_blocks(const RecordedRun& got, const H5Reference& want, const ModelFiles& model) {
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
void compare_streams(const RecordedRun& got, const H5Reference& want, const ModelFiles& model) {
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
  const std::vector<std::int64_t> dims = got.dims("/residual/stream");
  EXPECT_EQ(dims, want.dims("/residual"));  // [S, T, N, D]
}

// Keys that stand for a window each: their maps, and what is left of a row beside tokens and sink.
void compare_compressed(const RecordedRun& got, const H5Reference& want, const ModelFiles& model) {
  const std::vector<std::int64_t> dims = got.dims("/attention/compressed_mass");  // [A, H, T]
  const std::vector<float> mass = got.floats("/attention/compressed_mass");
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

// Every query sees every key; columns sum over all of them; sums before the norms of the stream.
void compare_encoder(const RecordedRun& got, const H5Reference& want) {
  expect_close(got.floats("/residual/prenorm"), want.floats("/residual_prenorm"), kValues,
               "prenorm");
  const std::vector<std::int64_t> dims = want.dims("/attention");  // [L, H, T, T]
  const auto T = static_cast<std::size_t>(dims[3]);
  for (const std::int64_t n : got.integers("/attention/visible"))
    ASSERT_EQ(n, static_cast<std::int64_t>(T));
  const std::vector<float> maps = want.floats("/attention");
  std::vector<float> mass(maps.size() / T);
  for (std::size_t i = 0; i < maps.size(); ++i) mass[i / (T * T) * T + i % T] += maps[i];
  expect_close(got.floats("/attention/key_mass"), mass, {0, 1e-4}, "key_mass");
}

// Attention over depth: what the halves put out, the closed sums, and every mix with its weights.
void compare_depth(const RecordedRun& got, const H5Reference& want, const ModelFiles& model) {
  for (int layer = 0; layer < model.spec().n_layers; ++layer) {
    compare_tap(got, "hook_attn_out", layer, layer_of(want, "/delta", 2 * layer), kValues, "delta");
    compare_tap(got, "hook_mlp_out", layer, layer_of(want, "/delta", 2 * layer + 1), kValues,
                "delta");
  }
  expect_close(got.floats("/residual/block_states"), want.floats("/block_states"), kValues,
               "block_states");
  std::vector<double> blocks;
  for (const int layer : got.ints("/residual/block_layers")) blocks.push_back(layer);
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

}  // namespace

void compare_with_expected(const std::string& capture_path, const H5Reference& want,
                           const ModelFiles& model, int run) {
  const RecordedRun got(capture_path, run);
  expect_close(got.floats("/residual/stream"), want.floats("/residual"), kValues, "residual");
  expect_close(got.floats("/residual/final_norm"), want.floats("/final_norm"), kValues,
               "final_norm");
  expect_close(got.floats("/attention/pattern"), want.floats("/attention"), kProbabilities,
               "attention");
  if (has_logits(want))
    expect_close(got.floats("/logits/full"), want.floats("/logits"), kValues, "logits");
  else
    compare_encoder(got, want);
  if (want.has("/attention_sink"))
    expect_close(got.floats("/attention/null_mass"), want.floats("/attention_sink"), kProbabilities,
                 "attention_sink");
  if (want.has("/attnres")) compare_depth(got, want, model);
  compare_norms(got, want, model);
  compare_blocks(got, want, model);
  if (want.has("/hyper/final/mixed")) compare_streams(got, want, model);
  if (want.has("/attention_compressed/1")) compare_compressed(got, want, model);
}

}  // namespace sinkscope::test
