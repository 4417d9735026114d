// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/snapshot/thumbnail_snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "core/error.h"

namespace sinkscope {
namespace {

Grid read_scores(const CaptureReader& reader, const ThumbnailSnapshot& out) {
  const auto n_layers = static_cast<std::int64_t>(out.layers.size());
  const std::vector<double> mass =
      reader.read_f64(out.request.run, "attention/key_mass", {0, 0, 0}, {n_layers, out.n_heads, 1});
  const std::vector<double> visible =
      reader.read_f64(out.request.run, "attention/visible", {0, 0}, {n_layers, 1});
  std::vector<double> scores = mass;
  for (std::size_t i = 0; i < scores.size(); ++i)
    scores[i] /= visible[i / static_cast<std::size_t>(out.n_heads)];
  return Grid(static_cast<int>(n_layers), out.n_heads, std::move(scores));
}

// Whether the first query sees a later key, as in an encoder: elsewhere those cells are exactly 0.
bool sees_later_keys(const float* map, int side) {
  return std::any_of(map + std::min(1, side), map + side, [](float p) { return p > 0; });
}

Grid tiles_of(const ThumbnailSnapshot& out) {
  const bool sees_all = sees_later_keys(out.values->data(), out.side);
  const int n_rows = static_cast<int>(out.layers.size()) * out.n_heads * out.side;
  std::vector<CellSpan> spans;
  for (int row = 0; row < n_rows; ++row)
    spans.push_back({0, sees_all ? out.side : row % out.side + 1});
  return Grid(n_rows, out.side, out.values).with_spans(std::move(spans));
}

}  // namespace

Grid ThumbnailSnapshot::map(int layer_slot, int head) const {
  const std::ptrdiff_t size = std::ptrdiff_t{side} * side;
  const auto begin = values->begin() + (std::ptrdiff_t{layer_slot} * n_heads + head) * size;
  const Grid map(side, side, std::vector<float>(begin, begin + size));
  return sees_later_keys(&*begin, side) ? map : map.with_spans(causal_spans(side, side));
}

ThumbnailSnapshot read_thumbnails(const CaptureReader& reader, const ThumbnailRequest& request) {
  ThumbnailSnapshot out;
  out.request = request;
  out.facts = read_run_facts(reader, request.run);
  if (!out.facts.has_thumbnail)
    throw Error(ErrorKind::not_found, fmt::format("{}: {}: no attention thumbnails are recorded",
                                                  reader.path(), request.run));
  out.layers = out.facts.attention_layers;
  out.n_heads = out.facts.model.n_heads;
  out.side = static_cast<int>(reader.dims(request.run, "attention/thumbnail").back());
  out.positions_per_cell = (out.facts.seq_len() + out.side - 1) / out.side;
  out.values = std::make_shared<const std::vector<float>>(reader.read_f32(
      request.run, "attention/thumbnail", {0, 0, 0, 0},
      {static_cast<std::int64_t>(out.layers.size()), out.n_heads, out.side, out.side}));
  out.all = tiles_of(out);
  out.scores = read_scores(reader, out);
  return out;
}

}  // namespace sinkscope
