// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/app/small_capture.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "core/capture_layout.h"
#include "core/capture_writer.h"

namespace sinkscope::test {
namespace {

constexpr int kHeadDim = 5;

RunInput input_of(int n_tokens, const std::string& name) {
  RunInput input;
  input.name = name;
  input.text = "some text";
  for (int t = 0; t < n_tokens; ++t) {
    input.token_ids.push_back(t + 1);
    input.token_text.push_back("t" + std::to_string(t));
  }
  input.bos_positions = {0};
  return input;
}

NormFacts norm_of(const std::string& role, const std::vector<int>& layers) {
  NormFacts norm;
  norm.role = role;
  norm.kind = "rms";
  norm.eps = 1e-5;
  norm.layers = layers;
  norm.width = kWidth;
  norm.gain.assign(layers.size() * kWidth, 1.0F);
  norm.gain[2] = 0.01F;
  norm.gain_raw = norm.gain;
  return norm;
}

CaptureLayout layout() {
  CaptureLayout layout;
  layout.model = {"small", "made by a test", "0123",   "llama", "{}", kLayers,
                  kHeads,  kKvHeads,         kHeadDim, kWidth,  50};
  layout.runs = {input_of(kTokens, ""), input_of(kTokens + 3, "long")};
  layout.attention_layers = {0, 1, 2};
  layout.norms = {norm_of("ln1", {0, 1, 2}), norm_of("ln2", {0, 1, 2}), norm_of("ln_final", {-1})};
  layout.sites = {{"hook_resid_pre", {0, 1, 2}, kWidth, false, true},
                  {"hook_resid_mid", {0, 1, 2}, kWidth, false, true},
                  {"hook_resid_post", {0, 1, 2}, kWidth, false, true},
                  {"ln1.hook_out", {0, 1, 2}, kWidth, true, false},
                  {"ln2.hook_out", {0, 1, 2}, kWidth, true, false},
                  {"ln_final.hook_out", {-1}, kWidth, true, false},
                  {"hook_attn_out", {0, 1, 2}, kWidth, false, false},
                  {"hook_mlp_out", {0, 1, 2}, kWidth, false, false}};
  layout.pattern.layers = {0, 2};
  layout.pattern.heads = {1, 2, 3};
  layout.taps = {{"attn.hook_z", {1, 2}, {kHeads, kSeqLen, kHeadDim}}};
  layout.top_k = 3;
  layout.provenance = {"cpu", "float32", "", "fused", "capture --record maps --layers 0,2",
                       "",    1,         0};
  return layout;
}

// What the writer cannot know by itself.
bool is_measured(const std::string& path) {
  const auto leaf = path.substr(path.rfind('/') + 1);
  static const std::vector<std::string> known = {"layers", "sites", "pattern_layers",
                                                 "pattern_heads", "pattern_rows"};
  const bool in_group = path.starts_with("attention/") || path.starts_with("residual/") ||
                        path.starts_with("stats/") || path.starts_with("logits/") ||
                        path.starts_with("taps/");
  return in_group && path != "attention/pattern" &&
         std::find(known.begin(), known.end(), leaf) == known.end();
}

float value_of(const DatasetSpec& spec, std::int64_t i) {
  if (spec.path == "residual/stream") {
    const std::int64_t n_tokens = spec.dims[1];
    return static_cast<float>(1000 * (i / (n_tokens * kWidth)) + 10 * (i / kWidth % n_tokens) +
                              i % kWidth);
  }
  if (spec.path.starts_with("taps/"))
    return static_cast<float>(i % (kHeads * spec.dims[2] * kHeadDim));
  return static_cast<float>(i % 5 + 1) / 8;
}

void fill(CaptureWriter& writer, int run, const DatasetSpec& spec) {
  std::int64_t n = 1;
  for (const std::int64_t dim : spec.dims) n *= dim;
  const std::vector<std::int64_t> start(spec.dims.size(), 0);
  std::vector<float> values;
  for (std::int64_t i = 0; i < n; ++i) values.push_back(value_of(spec, i));
  if (spec.type == ElementType::f32) {
    writer.write(run, spec.path, start, spec.dims, values.data());
  } else if (spec.type == ElementType::f64) {
    const std::vector<double> doubles(values.begin(), values.end());
    writer.write(run, spec.path, start, spec.dims, doubles.data());
  } else {
    std::vector<std::int32_t> indices(values.size(), 0);
    if (spec.path == "attention/visible")
      for (std::size_t i = 0; i < indices.size(); ++i)
        indices[i] =
            static_cast<std::int32_t>(spec.dims[1] - static_cast<std::int64_t>(i) % spec.dims[1]);
    writer.write(run, spec.path, start, spec.dims, indices.data());
  }
}

void fill_pattern(CaptureWriter& writer, int run) {
  const CaptureLayout& plan = writer.layout();
  const int n_tokens = plan.runs[static_cast<std::size_t>(run)].seq_len();
  for (std::size_t slot = 0; slot < plan.pattern.layers.size(); ++slot) {
    std::vector<float> maps;
    for (const int head : plan.pattern.heads)
      for (int row = 0; row < n_tokens; ++row)
        for (int key = 0; key < n_tokens; ++key)
          maps.push_back(key > row ? 0.0F
                                   : static_cast<float>(1000 * plan.pattern.layers[slot] +
                                                        100 * head + 10 * row + key));
    writer.write_pattern(run, static_cast<int>(slot), 0,
                         static_cast<int>(plan.pattern.heads.size()), 0, n_tokens, 0, n_tokens,
                         maps.data());
  }
}

}  // namespace

std::string small_capture(const std::string& folder,
                          const std::function<void(CaptureLayout&)>& change) {
  const std::string path = (std::filesystem::path(folder) / "small.h5").string();
  CaptureLayout plan = layout();
  if (change) change(plan);
  const auto writer = CaptureWriter::create(path, plan, CaptureWriter::Existing::overwrite);
  for (int run = 0; run < static_cast<int>(plan.runs.size()); ++run) {
    for (const DatasetSpec& spec : datasets_of(plan, run))
      if (is_measured(spec.path)) fill(*writer, run, spec);
    fill_pattern(*writer, run);
  }
  writer->layer_done(kLayers, static_cast<int>(plan.runs.size()));
  writer->finish();
  return path;
}

}  // namespace sinkscope::test
