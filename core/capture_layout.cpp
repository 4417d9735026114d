// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/capture_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/capture_schema.h"
#include "core/error.h"
#include "core/sha256.h"

namespace sinkscope {
namespace {

constexpr int kWindow = 64;  // side of windows and thumbnails

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorKind::invalid_argument, "capture layout: " + message);
}

int ceil_div(int a, int b) { return (a + b - 1) / b; }

std::int64_t n_of(const auto& container) { return static_cast<std::int64_t>(container.size()); }

void check_name(const std::string& name) {
  if (name.empty() || name == "." || name.find('/') != std::string::npos) {
    refuse(fmt::format("expected a hook or role name without '/', found \"{}\"", name));
  }
}

void check_norm(const NormFacts& norm) {
  check_name(norm.role);
  const std::int64_t expected = n_of(norm.layers) * norm.width;
  for (const auto* values : {&norm.gain, &norm.gain_raw, &norm.bias}) {
    if (n_of(*values) == expected || (values == &norm.bias && values->empty())) continue;
    refuse(fmt::format("norm {}: expected {} layers x {} = {} values, found {}", norm.role,
                       norm.layers.size(), norm.width, expected, values->size()));
  }
}

// Builds the list of one run from the schema's rules.
class SpecList {
 public:
  explicit SpecList(Symbols symbols) : symbols_(std::move(symbols)) {}

  // Every rule below `group` ("stats/*/") that `wanted` accepts by the rest of its path; "*"
  // becomes `name`, and `local` adds to the symbols.
  template <class Wanted>
  void add(std::string_view group, const std::string& name, const Symbols& local, Wanted wanted) {
    for (const DatasetRule& rule : dataset_rules()) {
      if (!rule.path.starts_with(group)) continue;
      if (!wanted(rule.path.substr(group.size()))) continue;
      std::string path(rule.path);
      if (const auto star = path.find('*'); star != std::string::npos) path.replace(star, 1, name);
      specs_.push_back({std::move(path), rule.type, shape(rule.shape, local), {}});
    }
  }

  DatasetSpec& last() { return specs_.back(); }
  std::vector<DatasetSpec> take() { return std::move(specs_); }

 private:
  std::vector<std::int64_t> shape(std::string_view text, const Symbols& local) const {
    std::vector<std::int64_t> dims;
    for (const auto part : split(text, ',')) {
      if (part == "…") continue;  // the caller appends the rest
      if (is_optional(part)) {
        const std::int64_t n = symbols_.find(part.substr(0, part.size() - 1))->second;
        if (n > 1) dims.push_back(n);
        continue;
      }
      const auto found = local.find(part);
      dims.push_back(found != local.end() ? found->second : symbols_.find(part)->second);
    }
    return dims;
  }

  Symbols symbols_;
  std::vector<DatasetSpec> specs_;
};

constexpr auto kAll = [](std::string_view) { return true; };

Symbols symbols_of(const CaptureLayout& layout, const RunInput& run) {
  const ModelFacts& model = layout.model;
  const std::int64_t seq_len = run.seq_len();
  const PatternRecord& pattern = layout.pattern;
  const std::int64_t n_heads = pattern.heads.empty() ? model.n_heads : n_of(pattern.heads);
  return {
      {"T", seq_len},
      {"T-1", seq_len - 1},
      {"b", n_of(run.bos_positions)},
      {"A", n_of(layout.attention_layers)},
      {"H", model.n_heads},
      {"H_v", model.n_kv_heads},
      {"W", std::min<std::int64_t>(seq_len, kWindow)},
      {"B", std::min<std::int64_t>(seq_len, kWindow)},
      {"S", n_of(residual_sites(model.n_layers, layout.parallel_blocks))},
      {"L+1", model.n_layers + 1},
      {"2L", std::int64_t{2} * model.n_layers},
      {"m", n_of(layout.block_layers)},
      {"D", model.d_model},
      {"D_r", model.state_width()},
      {"N_r", model.n_streams},
      {"L_p", pattern.reduces(ReduceOver::layers) ? 1 : n_of(pattern.layers)},
      {"Q", pattern.reduces(ReduceOver::heads) ? 1 : n_heads},
      {"R", pattern.rows.empty() ? seq_len : n_of(pattern.rows)},
      {"k", std::min(layout.top_k, model.vocab_size)},
      {"V", model.vocab_size},
  };
}

void add_pattern_chunk(DatasetSpec& spec, int seq_len) {
  const std::int64_t side = pattern_chunk_side(seq_len, static_cast<int>(spec.dims[1]));
  spec.chunk = {1, 1, std::min(side, spec.dims[2]), side};
}

void add_attention(SpecList& list, const CaptureLayout& layout, int seq_len) {
  if (layout.attention_layers.empty()) return;
  list.add("attention/", "", {}, [&](std::string_view path) {
    return !path.starts_with("pattern") &&
           (path != "compressed_mass" || layout.has_compressed_keys);
  });
  if (layout.pattern.layers.empty()) return;
  list.add("attention/pattern", "", {}, kAll);
  add_pattern_chunk(list.last(), seq_len);
}

// Norms on the stream itself: what they read has statistics of its own.
bool is_post_norm(const CaptureLayout& layout) {
  return std::any_of(layout.sites.begin(), layout.sites.end(),
                     [](const StatsSite& site) { return site.hook == "hook_resid_mid_sum"; });
}

void add_residual(SpecList& list, const CaptureLayout& layout, int seq_len) {
  const auto is_stream = [](std::string_view path) { return path == "stream"; };
  const auto is_final = [](std::string_view path) { return path == "final_norm"; };
  const auto is_sum = [](std::string_view path) { return path == "prenorm"; };
  const auto is_block = [](std::string_view path) { return path == "block_layers"; };
  const auto is_block_state = [](std::string_view path) { return path == "block_states"; };
  list.add("residual/", "", {}, [&](auto path) {
    return !is_stream(path) && !is_final(path) && !is_sum(path) && !is_block_state(path) &&
           (!is_block(path) || !layout.block_layers.empty());
  });
  if (!layout.stream) return;
  list.add("residual/", "", {}, is_stream);
  list.last().chunk = list.last().dims;
  list.last().chunk[0] = 1;
  list.last().chunk[1] = token_chunk_side(seq_len);
  list.add("residual/", "", {}, is_final);
  if (!layout.block_layers.empty()) {
    list.add("residual/", "", {}, is_block_state);
    list.last().chunk = {1, token_chunk_side(seq_len), layout.model.d_model};
  }
  if (!is_post_norm(layout)) return;
  list.add("residual/", "", {}, is_sum);
  list.last().chunk = {1, token_chunk_side(seq_len), layout.model.d_model};
}

void add_stats(SpecList& list, const StatsSite& site) {
  check_name(site.hook);
  list.add("stats/*/", site.hook, {{"N", n_of(site.layers)}, {"D_s", site.width}},
           [&](std::string_view path) {
             if (path == "median_abs") return site.is_residual;
             if (path == "corr")
               return site.hook == "ln1.hook_gate" || site.hook == "ln2.hook_gate";
             return site.is_norm || !path.starts_with("token/input_");
           });
}

void add_tap(SpecList& list, const TapRecord& tap, int seq_len) {
  check_name(tap.hook);
  list.add("taps/*/", tap.hook, {{"N", n_of(tap.layers)}}, kAll);
  DatasetSpec& values = list.last();
  std::vector<std::int64_t> chunk{1};
  bool is_before_tokens = true;
  for (const int dim : tap.dims) {
    const bool is_tokens = dim == kSeqLen;
    is_before_tokens = is_before_tokens && !is_tokens;
    const int size = dim < 0 ? std::max(1, seq_len / -dim) : dim;
    values.dims.push_back(size);
    chunk.push_back(is_tokens ? token_chunk_side(seq_len) : is_before_tokens ? 1 : size);
  }
  if (!is_before_tokens) values.chunk = std::move(chunk);
}

void check_twin(const CaptureLayout& layout, int run) {
  const RunInput& input = layout.runs[static_cast<std::size_t>(run)];
  if (input.edit_of < 0) return;
  for (const RunInput& other : layout.runs)
    if (other.baseline_file.empty() != input.baseline_file.empty())
      refuse("expected baselines all in this file or all in another");
  if (!input.baseline_file.empty()) return;
  const bool is_before = input.edit_of < run;
  if (!is_before || layout.runs[static_cast<std::size_t>(input.edit_of)].edit_of >= 0 ||
      layout.runs[static_cast<std::size_t>(input.edit_of)].token_ids != input.token_ids)
    refuse(
        fmt::format("runs[{}]: expected a twin of an earlier run with the same tokens, found "
                    "edit_of = {}",
                    run, input.edit_of));
}

}  // namespace

std::int64_t DatasetSpec::n_bytes() const {
  std::int64_t n = element_size(type);
  for (const std::int64_t dim : dims) n *= dim;
  return n;
}

RunInput as_it_is(RunInput run) {
  run.edit_of = -1;
  run.what_if = run.baseline_file = run.calibration_sha256 = {};
  return run;
}

std::string input_sha256(const std::vector<int>& token_ids) {
  Sha256 hash;
  for (const int id : token_ids) {
    const auto value = static_cast<std::uint32_t>(id);
    const unsigned char bytes[4] = {
        static_cast<unsigned char>(value), static_cast<unsigned char>(value >> 8),
        static_cast<unsigned char>(value >> 16), static_cast<unsigned char>(value >> 24)};
    hash.add(bytes, sizeof bytes);
  }
  return hash.hex();
}

std::string run_group_name(const std::vector<RunInput>& runs, int run) {
  const int base = runs.at(static_cast<std::size_t>(run)).edit_of;
  if (base < 0) return fmt::format("run{}", run);
  int number = 0;
  for (int earlier = 0; earlier < run; ++earlier)
    number += runs[static_cast<std::size_t>(earlier)].edit_of == base ? 1 : 0;
  return fmt::format("run{}_edit{}", base, number);
}

std::vector<DatasetSpec> datasets_of(const CaptureLayout& layout, int run) {
  const RunInput& input = layout.runs.at(static_cast<std::size_t>(run));
  const int seq_len = input.seq_len();
  if (seq_len == 0) refuse(fmt::format("run{}: expected at least one token, found none", run));
  check_twin(layout, run);
  const bool is_first = run == 0;
  SpecList list(symbols_of(layout, input));
  list.add("input/", "", {}, kAll);
  if (is_first) list.add("model/", "", {}, kAll);
  add_attention(list, layout, seq_len);
  add_residual(list, layout, seq_len);
  for (const NormFacts& norm : layout.norms) {
    check_norm(norm);
    if (!is_first) continue;
    list.add("norm/*/", norm.role, {{"N", n_of(norm.layers)}, {"C", norm.width}},
             [&](std::string_view path) {
               if (path == "pre_gain") return !norm.pre_gain.empty();
               return path != "bias" || !norm.bias.empty();
             });
  }
  for (const StatsSite& site : layout.sites) add_stats(list, site);
  for (const TapRecord& tap : layout.taps) add_tap(list, tap, seq_len);
  if (layout.has_head) {
    list.add("logits/", "", {},
             [&](std::string_view path) { return path != "full" || layout.logits_full; });
  }
  if (input.edit_of >= 0) {
    list.add("whatif", "", {}, kAll);
    if (layout.has_head) list.add("compare/", "", {}, kAll);
  }
  if (is_first) list.add("provenance/", "", {}, kAll);
  return list.take();
}

std::vector<std::string> residual_sites(int n_layers, bool parallel_blocks) {
  std::vector<std::string> sites;
  if (n_layers > 0) sites.emplace_back("blocks.0.hook_resid_pre");
  for (int layer = 0; layer < n_layers; ++layer) {
    if (!parallel_blocks) sites.push_back(fmt::format("blocks.{}.hook_resid_mid", layer));
    sites.push_back(fmt::format("blocks.{}.hook_resid_post", layer));
  }
  return sites;
}

int token_chunk_side(int seq_len) {
  return seq_len <= 0 ? 1 : ceil_div(seq_len, ceil_div(seq_len, 256));
}

int pattern_chunk_side(int seq_len, int heads) {
  constexpr std::int64_t kMaxChunks = 16'000;
  int side = token_chunk_side(seq_len);
  while (side < seq_len) {
    const std::int64_t per_axis = ceil_div(seq_len, side);
    if (per_axis * per_axis * heads <= kMaxChunks) break;
    side = std::min(2 * side, seq_len);
  }
  return side;
}

}  // namespace sinkscope
