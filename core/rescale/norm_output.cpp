// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/rescale/norm_output.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "core/error.h"

namespace sinkscope {
namespace {

// The final norm belongs to no block: an edit of some blocks reaches it by its name alone.
template <class E>
bool is_at_norm(const E& edit, const std::string& role, int layer) {
  const std::string full = layer < 0 ? role : fmt::format("blocks.{}.{}", layer, role);
  const bool is_named =
      edit.norms.empty() || std::any_of(edit.norms.begin(), edit.norms.end(),
                                        [&](const auto& n) { return n == role || n == full; });
  // Without a name, a probe is of the norms that read the stream.
  const bool is_behind_a_half = role.ends_with("_post");
  if (std::is_same_v<E, NormProbe> && edit.norms.empty() && is_behind_a_half) return false;
  const bool in_layers =
      layer < 0 ? edit.layers.is_all() || !edit.norms.empty() : edit.layers.contains(layer);
  return is_named && in_layers;
}

// Row of a block in a group that lists its blocks; nullopt = it is not among them.
std::optional<std::int64_t> row_in(const CaptureReader& reader, const std::string& run,
                                   const std::string& group, int layer) {
  if (!reader.has(run, group + "/layers")) return std::nullopt;
  const std::vector<int> layers = reader.read_i32(run, group + "/layers");
  const auto found = std::find(layers.begin(), layers.end(), layer);
  if (found == layers.end()) return std::nullopt;
  return found - layers.begin();
}

}  // namespace

NormChange norm_change(const CaptureReader& reader, const std::string& run, const WhatIf& what_if,
                       const std::string& role, int layer) {
  for (const Edit& edit : what_if) {
    const bool is_here = std::visit(
        [&](const auto& e) {
          if constexpr (requires { e.norms; }) return is_at_norm(e, role, layer);
          return false;
        },
        edit);
    if (is_here) return NormChange::edited;
  }
  for (const char* kind : {"stats", "taps"})
    if (row_in(reader, run, fmt::format("{}/{}.hook_gate", kind, role), layer))
      return NormChange::gated;
  return NormChange::none;
}

bool for_each_output_block(const CaptureReader& reader, const std::string& run,
                           const std::string& role, int layer, int width,
                           const std::function<void(int, const ConstMapF&)>& visit) {
  std::string path = fmt::format("taps/{}.hook_out", role);
  std::vector<std::int64_t> start;
  const std::int64_t T = reader.dims(run, "input/token_ids").at(0);
  if (const auto row = row_in(reader, run, path, layer)) {
    path += "/values";
    start = {*row, 0, 0};
  } else if (layer < 0 && reader.has(run, "residual/final_norm")) {
    path = "residual/final_norm";
    start = {0, 0};
  } else {
    return false;
  }
  const std::vector<std::int64_t> found = reader.dims(run, path);
  const std::size_t rank = start.size();
  if (found.size() != rank || found[rank - 2] != T || found[rank - 1] != width ||
      (rank == 3 && start[0] >= found[0]))
    throw Error(ErrorKind::corrupt,
                fmt::format("{}::{}/{}: expected rows [{}, {}], found [{}]", reader.path(), run,
                            path, T, width, fmt::join(found, ", ")));
  constexpr std::int64_t kBlockBytes = 16 << 20;
  const std::int64_t step =
      std::max<std::int64_t>(1, kBlockBytes / (std::int64_t{4} * std::max(width, 1)));
  std::vector<float> block;
  for (std::int64_t t = 0; t < T; t += step) {
    const std::int64_t n = std::min(step, T - t);
    std::vector<std::int64_t> count(rank, 1);
    start[rank - 2] = t;
    count[rank - 2] = n;
    count[rank - 1] = width;
    reader.read_f32_into(run, path, start, count, block);
    visit(static_cast<int>(t), ConstMapF(block.data(), n, width));
  }
  return true;
}

}  // namespace sinkscope
