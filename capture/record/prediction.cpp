// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/prediction.h"

#include <algorithm>

#include "capture/model/mlp_chunk.h"
#include "capture/record/block_size.h"
#include "capture/record/site.h"
#include "capture/record/tile_geometry.h"

namespace sinkscope {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20;

struct Tokens {
  std::int64_t longest = 0, all = 0;     // of one run, of all runs
  std::int64_t group = 0, n_groups = 0;  // of the largest group together
};

Tokens tokens_of(const CaptureRequest& request, const ArchSpec& spec) {
  Tokens tokens;
  for (const auto& [first, last] : prompt_groups(request, spec)) {
    std::int64_t sum = 0;
    for (int r = first; r < last; ++r) {
      const auto& run = request.runs[static_cast<std::size_t>(r)];
      // A twin whose baseline has to be run again is two.
      sum += run.seq_len() * (run.baseline_file.empty() ? 1 : 2);
      tokens.longest = std::max<std::int64_t>(tokens.longest, run.seq_len());
    }
    for (const RunInput& prompt : request.calibration) sum += prompt.seq_len();
    tokens.all += sum;
    tokens.group = std::max(tokens.group, sum);
    ++tokens.n_groups;
  }
  return tokens;
}

std::int64_t head_slice(const ArchSpec& spec) {
  return spec.has_head ? std::int64_t{std::min(3072, spec.vocab_size)} * spec.d_model : 0;
}

// Weights in memory: blocks that are kept between groups, else the one at work and the one that is
// read ahead (or slices of the head), with the experts that its tokens reach.
std::int64_t weight_bytes(const ModelFiles& model, const CaptureRequest& request,
                          const Tokens& tokens) {
  const ArchSpec& spec = model.spec();
  const WeightUse use = weight_use(model, request.weight_budget, request.dtype, tokens.group);
  const std::int64_t item = item_bytes(request.dtype), slice = head_slice(spec);
  std::int64_t kept = 0;
  for (const BlockUse& block : use.blocks) kept += block.kept + block.kept_experts;
  const std::int64_t last = use.blocks.empty() ? 0 : use.blocks.back().values,
                     streamed = std::max(use.two, last + slice) + use.most_experts + slice;
  // Read as float32 and rounded afterwards; and oneDNN packs the weights of products in such a type
  // whose inner dimension is long, measured as one copy of the largest matrix.
  const std::int64_t wide = item < 4 ? 4 * use.read_at_once + item * use.largest_role : 0;
  if (tokens.n_groups < 2) return item * streamed + wide;
  return item * (kept + (kept < use.all ? streamed : 2 * slice)) + wide;
}

// The widest moment of a block of the longest run: projections and a few streams, with gate and up
// and their product of a chunk of tokens.
std::int64_t block_bytes(const ArchSpec& spec, std::int64_t longest) {
  std::int64_t mixer = 2 * spec.q_width() + 2 * spec.kv_width();
  if (spec.delta.n_value_heads > 0)
    mixer = std::max<std::int64_t>(mixer, std::int64_t{4} * spec.delta.n_channels());
  // Mixes over depth for q, k and v, and their norms.
  if (spec.depth_block > 0) mixer += std::int64_t{6} * spec.d_model;
  const std::int64_t mlp = std::max<std::int64_t>(spec.widest_mlp(), spec.moe.d_shared);
  const std::int64_t mixing = spec.has_streams() ? std::int64_t{6} * spec.state_width() : 0;
  return 4 * (longest * (mixer + 8 * spec.d_model + mixing) +
              3 * mlp * std::min(longest, mlp_chunk(longest, mlp)));
}

// Scores of a tile of attention; where maps are recorded there are two of them: one is filled while
// the other is written.
std::int64_t attention_bytes(const ArchSpec& spec, const CaptureRequest& request,
                             std::int64_t longest) {
  const TileGeometry tile =
      tile_geometry(static_cast<int>(longest), spec.n_heads, value_heads(spec));
  const std::int64_t scores = std::int64_t{4} * tile.heads * tile.rows * longest;
  std::int64_t bytes = 0;
  if (request.record.maps) bytes += 2 * scores;
  // Masks, sorted scores with their places, weights in double: measured. Compressed keys know no
  // other body.
  if (request.kernel == "reference" || has_site(spec, Site::compressed_kv)) bytes += 22 * scores;
  if (request.record.maps && request.record.reduce != Reduce::none &&
      request.record.reduce_over == ReduceOver::layers) {
    const std::size_t n_chosen = request.record.heads.size();
    bytes += reduced_map_bytes(request, n_chosen > 0 ? static_cast<int>(n_chosen) : spec.n_heads);
  }
  return bytes;
}

// What the program takes before anything is recorded: LibTorch, HDF5, and the tokenizer where there
// is one.
std::int64_t start_bytes(const ArchSpec& spec, const CaptureRequest& request) {
  const bool has_tokenizer =
      std::any_of(request.runs.begin(), request.runs.end(), [](const RunInput& run) {
        return std::any_of(run.token_text.begin(), run.token_text.end(),
                           [](const std::string& label) { return !label.empty(); });
      });
  return 147 * kMiB + (has_tokenizer ? std::int64_t{640} * spec.vocab_size : 0);
}

}  // namespace

std::int64_t largest_group(const CaptureRequest& request, const ArchSpec& spec) {
  return tokens_of(request, spec).group;
}

std::vector<std::pair<int, int>> prompt_groups(const CaptureRequest& request, const ArchSpec& spec,
                                               int begin) {
  std::vector<std::pair<int, int>> groups;
  const auto n = static_cast<int>(request.runs.size());
  while (begin < n) {
    std::int64_t bytes = 0;
    int end = begin;
    while (end < n) {
      bytes += state_bytes(request.runs[static_cast<std::size_t>(end)].seq_len(), spec);
      if (end > begin && bytes > request.activation_budget) break;
      ++end;
    }
    groups.emplace_back(begin, end);
    begin = end;
  }
  return groups;
}

std::int64_t kept_weight_bytes(const ModelFiles& model, std::int64_t budget, RunDtype dtype,
                               std::int64_t n_tokens) {
  return weight_use(model, budget, dtype, n_tokens).kept_bytes;
}

std::int64_t reduced_map_bytes(const CaptureRequest& request, int n_heads) {
  std::int64_t bytes = 0;
  for (const RunInput& run : request.runs) {
    const std::int64_t rows = request.record.rows.empty()
                                  ? run.seq_len()
                                  : static_cast<std::int64_t>(request.record.rows.size());
    bytes += std::int64_t{4} * n_heads * rows * run.seq_len();
  }
  return bytes;
}

std::int64_t predicted_memory(const ModelFiles& model, const CaptureRequest& request) {
  const ArchSpec& spec = model.spec();
  const Tokens tokens = tokens_of(request, spec);
  // The stream, its successor, and the closed sums of attention over depth.
  const std::int64_t n_states = 2 + spec.n_block_states(spec.n_layers);
  const std::int64_t states =
      n_states * item_bytes(request.dtype) * tokens.group * spec.state_width();
  return start_bytes(spec, request) + weight_bytes(model, request, tokens) + states +
         block_bytes(spec, tokens.longest) + attention_bytes(spec, request, tokens.longest);
}

}  // namespace sinkscope
