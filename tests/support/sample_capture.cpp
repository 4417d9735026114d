// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/sample_capture.h"

#include <algorithm>
#include <vector>

namespace sinkscope::test {
namespace {

constexpr int kBlocks = 3;

int hash_of(const std::string& text) {
  unsigned hash = 17;
  for (const char c : text) hash = hash * 31 + static_cast<unsigned char>(c);
  return static_cast<int>(hash % 997);
}

std::vector<float> ramp(int n, float from) {
  std::vector<float> out;
  for (int i = 0; i < n; ++i) out.push_back(from + 0.25F * static_cast<float>(i));
  return out;
}

NormFacts norm(const std::string& role, std::vector<int> layers, int width, bool has_bias) {
  NormFacts facts;
  facts.role = role;
  facts.kind = has_bias ? "layer_norm" : "rms";
  facts.eps = 1e-5;
  facts.offset = 1;
  facts.width = width;
  const int n = static_cast<int>(layers.size()) * width;
  facts.layers = std::move(layers);
  facts.gain = ramp(n, 1.5F);
  facts.gain_raw = ramp(n, 0.5F);
  if (has_bias) facts.bias = ramp(n, -2.0F);
  return facts;
}

// Row of `block` in an array [N,…], -1 if it has none.
int row_of(const std::vector<int>& layers, int block) {
  const auto found = std::find(layers.begin(), layers.end(), block);
  return found == layers.end() ? -1 : static_cast<int>(found - layers.begin());
}

// Which rows of the array belong to `block`: [begin, end).
struct Rows {
  std::int64_t begin = 0, end = 0;
};
Rows rows_of(const CaptureLayout& layout, const DatasetSpec& spec, int block) {
  const bool is_last = block == kBlocks - 1;
  const auto one = [](int row) { return row < 0 ? Rows{} : Rows{row, row + 1}; };
  const auto listed = [&](const std::vector<int>& layers) {
    if (is_last && layers == std::vector{-1}) return Rows{0, 1};
    return one(row_of(layers, block));
  };
  if (spec.path == "attention/pattern") return listed(layout.pattern.layers);
  if (spec.path.starts_with("attention/")) return listed(layout.attention_layers);
  if (spec.path == "residual/final_norm" || spec.path.starts_with("logits/")) {
    return is_last ? Rows{0, spec.dims[0]} : Rows{};
  }
  if (spec.path.starts_with("residual/abs_mean")) return {block == 0 ? 0 : block + 1, block + 2};
  if (spec.path.starts_with("residual/")) return {block == 0 ? 0 : 2 * block + 1, 2 * block + 3};
  for (const StatsSite& site : layout.sites) {
    if (spec.path.starts_with("stats/" + site.hook + "/")) return listed(site.layers);
  }
  for (const TapRecord& tap : layout.taps) {
    if (spec.path.starts_with("taps/" + tap.hook + "/")) return listed(tap.layers);
  }
  return {};
}

template <class T>
void write_rows(CaptureWriter& writer, int run, const DatasetSpec& spec, Rows rows) {
  std::int64_t row_size = 1;
  for (std::size_t i = 1; i < spec.dims.size(); ++i) row_size *= spec.dims[i];
  std::vector<T> values;
  for (std::int64_t i = rows.begin * row_size; i < rows.end * row_size; ++i) {
    values.push_back(static_cast<T>(sample_value(run, spec, i)));
  }
  std::vector<std::int64_t> start(spec.dims.size(), 0), count = spec.dims;
  start[0] = rows.begin;
  count[0] = rows.end - rows.begin;
  writer.write(run, spec.path, start, count, values.data());
}

void write_maps(CaptureWriter& writer, int run, const DatasetSpec& spec, int slot) {
  const auto heads = static_cast<int>(spec.dims[1]), rows = static_cast<int>(spec.dims[2]);
  const auto keys = static_cast<int>(spec.dims[3]);
  std::vector<float> values;
  const std::int64_t n = std::int64_t{heads} * rows * keys;
  for (std::int64_t i = slot * n; i < (slot + 1) * n; ++i) {
    values.push_back(static_cast<float>(sample_value(run, spec, i)));
  }
  writer.write_pattern(run, slot, 0, heads, 0, rows, 0, keys, values.data());
}

}  // namespace

CaptureLayout sample_layout() {
  CaptureLayout layout;
  layout.model = {"sample",
                  "sample_data/sample",
                  "00ff",
                  "llama",
                  "{\"hidden_size\": 6, \"note\": \"größe\"}",
                  kBlocks,
                  4,
                  2,
                  3,
                  6,
                  11};
  RunInput first;
  first.name = "the first";
  first.text = "The größe of 😊";
  first.token_ids = {1, 4, 10, 0, 7, 7, 3};
  first.token_text = {"<s>", "The", " grö", "ße", " of", " ", "😊"};
  first.bos_positions = {0};
  first.tokenizer = "gguf:llama";
  RunInput second;
  second.token_ids = {5, 9, 2, 2, 8};
  layout.runs = {first, second};
  layout.attention_layers = {0, 2};
  layout.norms = {norm("ln1", {0, 1, 2}, 6, false), norm("ln_final", {-1}, 6, true)};
  layout.sites = {{"hook_resid_post", {0, 1, 2}, 6, false, true},
                  {"ln_final.hook_out", {-1}, 6, true, false}};
  layout.pattern.layers = {2};
  layout.pattern.heads = {0, 1, 3};
  layout.taps = {{"attn.hook_v", {1, 2}, {2, kSeqLen, 3}}};
  layout.logits_full = true;
  layout.top_k = 3;
  layout.provenance = {"cpu",  "float32", "2.15.0",      "reference", "capture --record all",
                       "2x64", 2,         -3'000'000'000};
  layout.creator = "sinkscope test";
  return layout;
}

double sample_value(int run, const DatasetSpec& spec, std::int64_t i) {
  if (spec.path == "attention/pattern") {
    const std::int64_t key = i % spec.dims[3], query = i / spec.dims[3] % spec.dims[2];
    if (key > query) return 0;
  }
  const double whole = hash_of(spec.path) + 1000 * run + static_cast<double>(i);
  return spec.type == ElementType::i32 ? whole : whole + 0.125;
}

bool is_streamed(const DatasetSpec& spec) {
  for (const char* known : {"input/", "model/", "norm/", "provenance/", "attention/pattern_"}) {
    if (spec.path.starts_with(known)) return false;
  }
  return spec.path != "residual/sites" && !spec.path.ends_with("/layers");
}

void write_sample_block(CaptureWriter& writer, int run, int block) {
  for (const DatasetSpec& spec : datasets_of(writer.layout(), run)) {
    if (!is_streamed(spec)) continue;
    const Rows rows = rows_of(writer.layout(), spec, block);
    if (rows.begin == rows.end) continue;
    if (spec.path == "attention/pattern") {
      write_maps(writer, run, spec, static_cast<int>(rows.begin));
    } else if (spec.type == ElementType::i32) {
      write_rows<std::int32_t>(writer, run, spec, rows);
    } else if (spec.type == ElementType::f64) {
      write_rows<double>(writer, run, spec, rows);
    } else {
      write_rows<float>(writer, run, spec, rows);
    }
  }
}

void write_sample_capture(const std::string& path) {
  const CaptureLayout layout = sample_layout();
  const auto writer = CaptureWriter::create(path, layout, CaptureWriter::Existing::overwrite);
  const int n_runs = static_cast<int>(layout.runs.size());
  for (int block = 0; block < kBlocks; ++block) {
    for (int run = 0; run < n_runs; ++run) write_sample_block(*writer, run, block);
    writer->layer_done(block + 1, block + 1 == kBlocks ? n_runs : 0);
  }
  writer->finish();
}

}  // namespace sinkscope::test
