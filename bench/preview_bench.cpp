// SPDX-License-Identifier: GPL-3.0-or-later
// One move of a slider: the norm or head recomputed from what a capture holds, and its picture.
#include <benchmark/benchmark.h>

#include <cmath>
#include <random>

#include "core/snapshot/preview_snapshot.h"

namespace {

using namespace sinkscope;

constexpr int kNormTokens = 512, kWidth = 4096, kHeadTokens = 2048;

RunFacts facts_of(int n_tokens) {
  RunFacts facts;
  facts.model.n_layers = 2;
  facts.input.token_ids.assign(static_cast<std::size_t>(n_tokens), 1);
  facts.input.token_text.assign(static_cast<std::size_t>(n_tokens), "a");
  return facts;
}

const PreviewInput& norm_input() {
  static const PreviewInput input = [] {
    NormInput norm;
    norm.role = "ln2";
    norm.layer = 1;
    norm.sites = {"blocks.1.hook_resid_mid"};
    norm.gain.assign(kWidth, 0.7F);
    norm.eps = 1e-5;
    norm.token_ids.assign(kNormTokens, 1);
    norm.x.resize(kNormTokens, kWidth);
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (float& value : norm.x.reshaped()) value = normal(random);
    norm.x.col(507).setConstant(900);
    PreviewInput made;
    made.facts = facts_of(kNormTokens);
    made.before = norm_output(norm);
    made.input = std::move(norm);
    return made;
  }();
  return input;
}

const PreviewInput& head_input() {
  static const PreviewInput input = [] {
    HeadInput head;
    head.seq_len = kHeadTokens;
    head.pattern = MatrixF::Zero(kHeadTokens, kHeadTokens);
    head.lse.assign(kHeadTokens, 3);
    head.null.assign(kHeadTokens, 0);
    std::mt19937 random(1);
    std::normal_distribution<float> normal(0, 2);
    for (int q = 0; q < kHeadTokens; ++q) {
      float* row = head.pattern.row(q).data();
      float sum = 0;
      for (int k = 0; k <= q; ++k) sum += row[k] = std::exp(normal(random) + (k == 0 ? 6.0F : 0));
      for (int k = 0; k <= q; ++k) row[k] /= sum;
    }
    PreviewInput made;
    made.facts = facts_of(kHeadTokens);
    made.before = head.pattern;
    made.input = std::move(head);
    return made;
  }();
  return input;
}

// The recomputed values alone.
void norm_values(benchmark::State& state, const char* edit) {
  const WhatIf what_if = parse_what_if(edit);
  const auto& norm = std::get<NormInput>(norm_input().input);
  for (auto _ : state) benchmark::DoNotOptimize(previewed_norm(norm, what_if));
}
void head_values(benchmark::State& state, const char* edit) {
  const WhatIf what_if = parse_what_if(edit);
  const auto& head = std::get<HeadInput>(head_input().input);
  for (auto _ : state) benchmark::DoNotOptimize(previewed_head(head, what_if));
}

// With everything that is drawn.
void norm_picture(benchmark::State& state, const char* edit) {
  const WhatIf what_if = parse_what_if(edit);
  for (auto _ : state) benchmark::DoNotOptimize(preview(norm_input(), what_if));
}
void head_picture(benchmark::State& state, const char* edit) {
  const WhatIf what_if = parse_what_if(edit);
  for (auto _ : state) benchmark::DoNotOptimize(preview(head_input(), what_if));
}

const char* const kClip = R"({"edit":"residual.clip","limit":100})";
const char* const kProbe = R"({"edit":"norm.probe","mode":"denominator","dims":[507]})";
const char* const kConst = R"({"edit":"norm.probe","mode":"remove_const","dims":[507]})";
const char* const kSoftmax1 = R"({"edit":"attention.normalizer","kind":"softmax1"})";
const char* const kClipped = R"({"edit":"attention.normalizer","kind":"clipped","gamma":-0.03})";
const char* const kEntmax = R"({"edit":"attention.normalizer","kind":"entmax15"})";
const char* const kSigmoid = R"({"edit":"attention.normalizer","kind":"sigmoid"})";
const char* const kMask = R"({"edit":"attention.mask_key","keys":[0]})";

BENCHMARK_CAPTURE(norm_values, clip, kClip)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(norm_values, denominator, kProbe)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(norm_values, remove_const, kConst)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(norm_picture, clip, kClip)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(head_values, softmax1, kSoftmax1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(head_values, clipped, kClipped)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(head_values, entmax15, kEntmax)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(head_values, sigmoid, kSigmoid)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(head_values, mask_key, kMask)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(head_picture, softmax1, kSoftmax1)->Unit(benchmark::kMillisecond);

}  // namespace
