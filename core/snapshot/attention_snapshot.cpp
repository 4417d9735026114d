// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/snapshot/attention_snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/error.h"
#include "core/site_name.h"
#include "core/snapshot/attention_source.h"

namespace sinkscope {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr std::int64_t kBlockBytes = std::int64_t{16} << 20;

void check_stop(const std::stop_token& stop) {
  if (stop.stop_requested()) throw Error(ErrorKind::invalid_argument, "canceled");
}

std::string heads_text(const std::vector<int>& heads, int n_heads) {
  if (static_cast<int>(heads.size()) == n_heads) return fmt::format("all {} heads", n_heads);
  if (heads.size() == 1)
    return heads.front() < 0 ? "reduced over heads" : fmt::format("head {}", heads.front());
  return fmt::format("{} heads", heads.size());
}

std::string layers_text(const std::vector<int>& layers, const RunFacts& facts) {
  if (layers.size() == 1) return layer_label(layers.front(), facts.model.n_layers);
  if (layers == facts.attention_layers) return fmt::format("all {} layers", layers.size());
  return fmt::format("{} layers", layers.size());
}

std::string title_of(const AttentionRequest& request, const RunFacts& facts) {
  const std::string place = fmt::format("{}, {}", layers_text(request.layers, facts),
                                        heads_text(request.heads, facts.model.n_heads));
  const char* over = request.combine == Combine::mean  ? "mean over "
                     : request.combine == Combine::max ? "largest over "
                                                       : "";
  const std::string removed =
      request.view == AttentionView::raw
          ? std::string()
          : fmt::format(" · without key {}, rows renormalized", request.sink_key);
  return over + place + removed;
}

// Rows [begin, end) of every map, combined. [end − begin, n_keys]
std::vector<float> combined_rows(const CaptureReader& reader, const AttentionPlace& place,
                                 const AttentionRequest& request, std::int64_t begin,
                                 std::int64_t end, const std::stop_token& stop) {
  const auto n_keys = static_cast<std::int64_t>(place.keys.size());
  std::vector<float> rows;
  for (const auto& [layer_slot, head_slot] : place.slots) {
    check_stop(stop);
    std::vector<float> one = reader.read_f32(
        request.run, place.dataset, {layer_slot, head_slot, begin, 0}, {1, 1, end - begin, n_keys});
    if (rows.empty()) {
      rows = std::move(one);
      continue;
    }
    for (std::size_t i = 0; i < rows.size(); ++i)
      rows[i] = request.combine == Combine::max ? std::fmax(rows[i], one[i]) : rows[i] + one[i];
  }
  if (request.combine == Combine::mean)
    for (float& value : rows) value /= static_cast<float>(place.slots.size());
  return rows;
}

// p_j / Σ_{i ≠ sink} p_i for the keys but the sink; NaN where nothing is left.
void remove_sink(float* row, std::size_t n_keys, std::size_t sink) {
  double rest = 0;
  for (std::size_t k = 0; k < n_keys; ++k)
    if (k != sink) rest += row[k];
  for (std::size_t k = 0; k < n_keys; ++k)
    row[k] = k == sink || rest <= 0 ? kNaN : static_cast<float>(row[k] / rest);
}

// Largest value of each cell × cell block, NaN passed over, of rows [n, n_keys] into one output
// row.
void pool_rows(const float* rows, std::int64_t n, std::int64_t n_keys, int cell, float* out) {
  for (std::int64_t c = 0; c * cell < n_keys; ++c) {
    float top = kNaN;
    const std::int64_t end = std::min<std::int64_t>((c + 1) * cell, n_keys);
    for (std::int64_t r = 0; r < n; ++r)
      for (std::int64_t k = c * cell; k < end; ++k) top = std::fmax(top, rows[r * n_keys + k]);
    out[c] = top;
  }
}

struct MapShape {
  std::int64_t n_queries = 0, n_keys = 0;  // as stored
  int cell = 1;                            // stored cells per drawn cell
  std::int64_t rows() const { return (n_queries + cell - 1) / cell; }
  std::int64_t cols() const { return (n_keys + cell - 1) / cell; }
};

std::vector<float> read_map(const CaptureReader& reader, const AttentionPlace& place,
                            const AttentionRequest& request, const MapShape& shape,
                            const std::stop_token& stop) {
  std::vector<float> map(static_cast<std::size_t>(shape.rows() * shape.cols()));
  const std::int64_t at_once =
      std::max<std::int64_t>(1, kBlockBytes / (shape.n_keys * 4 * shape.cell)) * shape.cell;
  for (std::int64_t begin = 0; begin < shape.n_queries; begin += at_once) {
    const std::int64_t end = std::min(begin + at_once, shape.n_queries);
    std::vector<float> rows = combined_rows(reader, place, request, begin, end, stop);
    if (request.view == AttentionView::sink_removed)
      for (std::int64_t r = 0; r < end - begin; ++r)
        remove_sink(rows.data() + r * shape.n_keys, static_cast<std::size_t>(shape.n_keys),
                    static_cast<std::size_t>(request.sink_key));
    for (std::int64_t r = 0; r < end - begin; r += shape.cell)
      pool_rows(rows.data() + r * shape.n_keys, std::min<std::int64_t>(shape.cell, end - begin - r),
                shape.n_keys, shape.cell, map.data() + (begin + r) / shape.cell * shape.cols());
  }
  return map;
}

// Queries that see key 0 are as many as the window is wide, T without one: the widest of the
// layers.
int window_width(const std::vector<double>& visible_key0) {
  return static_cast<int>(*std::max_element(visible_key0.begin(), visible_key0.end()));
}

// Columns of each row that some query behind it can see: keys > query − width and ≤ query.
std::vector<CellSpan> visible_spans(const AttentionSnapshot& map, const AttentionPlace& place,
                                    const MapShape& shape, int width) {
  std::vector<CellSpan> spans;
  const auto column_of = [&](int position) {  // the column that holds this key
    const auto after = std::upper_bound(map.keys.begin(), map.keys.end(), position);
    return static_cast<int>(after - map.keys.begin()) - 1;
  };
  const bool hides_column0 = map.request.view == AttentionView::sink_removed &&
                             map.request.sink_key == 0 && map.cell_size == 1;
  // Of an encoder every query sees the last key; of a causal model only the
  // last one does.
  const bool sees_all = map.visible.size() > 1 && map.visible.back() > 1;
  for (std::size_t r = 0; r < map.queries.size(); ++r) {
    const int first = map.queries[r];
    const std::size_t next =
        std::min((r + 1) * static_cast<std::size_t>(shape.cell), place.queries.size());
    const int last =
        place.positions_per_cell == 1
            ? place.queries[next - 1]
            : (r + 1 < map.queries.size() ? map.queries[r + 1] - 1 : map.facts.seq_len() - 1);
    CellSpan span{column_of(std::max(0, first - width + 1)), column_of(last) + 1};
    if (sees_all) span = {0, static_cast<int>(map.keys.size())};
    if (hides_column0) span.begin = std::max(span.begin, 1);
    span.end = std::max(span.begin, span.end);
    spans.push_back(span);
  }
  return spans;
}

// key_mass and visible [T], averaged over the (layer, head) of the request; returns the visible
// queries of key 0, one a layer.
std::vector<double> take_key_mass(const CaptureReader& reader, AttentionSnapshot& out,
                                  const std::stop_token& stop) {
  const AttentionRequest& request = out.request;
  const std::int64_t n = out.facts.seq_len();
  out.key_mass.assign(static_cast<std::size_t>(n), 0.0);
  out.visible.assign(static_cast<std::size_t>(n), 0.0);
  std::vector<double> visible_key0;
  std::vector<int> heads = request.heads;
  if (heads == std::vector<int>{-1}) {  // a map reduced over the heads: all of them
    heads.clear();
    for (int head = 0; head < out.facts.model.n_heads; ++head) heads.push_back(head);
  }
  const double n_maps = static_cast<double>(request.layers.size() * heads.size());
  const std::vector<int>& all = out.facts.attention_layers;
  for (const int layer : request.layers) {
    check_stop(stop);
    const std::int64_t slot = std::find(all.begin(), all.end(), layer) - all.begin();
    const std::vector<double> seen =
        reader.read_f64(request.run, "attention/visible", {slot, 0}, {1, n});
    visible_key0.push_back(seen.front());
    for (std::size_t k = 0; k < seen.size(); ++k)
      out.visible[k] += seen[k] / static_cast<double>(request.layers.size());
    for (const int head : heads) {
      const std::vector<double> mass =
          reader.read_f64(request.run, "attention/key_mass", {slot, head, 0}, {1, 1, n});
      for (std::size_t k = 0; k < mass.size(); ++k) out.key_mass[k] += mass[k] / n_maps;
    }
  }
  const auto sink = static_cast<std::size_t>(request.sink_key);
  out.sink_score = out.key_mass[sink] / out.visible[sink];
  return visible_key0;
}

std::vector<int> every(const std::vector<int>& positions, int step) {
  std::vector<int> some;
  for (std::size_t i = 0; i < positions.size(); i += static_cast<std::size_t>(step))
    some.push_back(positions[i]);
  return some;
}

std::vector<std::string> labels_at(const RunInput& input, const std::vector<int>& positions) {
  std::vector<std::string> labels;
  for (const int position : positions)
    labels.push_back(input.token_text.at(static_cast<std::size_t>(position)));
  return labels;
}

}  // namespace

AttentionSnapshot read_attention(const CaptureReader& reader, const AttentionRequest& request,
                                 const std::stop_token& stop) {
  AttentionSnapshot out;
  out.request = request;
  out.facts = read_run_facts(reader, request.run);
  const AttentionRequest full = resolved(request, out.facts);
  const AttentionPlace place = find_attention(reader, out.facts, full);
  out.source = place.source;
  out.title = title_of(full, out.facts);

  MapShape shape{static_cast<std::int64_t>(place.queries.size()),
                 static_cast<std::int64_t>(place.keys.size()), 1};
  const std::int64_t side = std::max(shape.n_queries, shape.n_keys);
  shape.cell = static_cast<int>((side + kMaxMapSide - 1) / kMaxMapSide);
  out.cell_size = shape.cell * place.positions_per_cell;
  out.source_text = shape.cell == 1 ? place.text
                                    : fmt::format("{}, largest of each {} × {}", place.text,
                                                  shape.cell, shape.cell);
  out.queries = every(place.queries, shape.cell);
  out.keys = every(place.keys, shape.cell);
  out.query_labels = labels_at(out.facts.input, out.queries);
  out.key_labels = labels_at(out.facts.input, out.keys);

  out.request = full;
  const int width = window_width(take_key_mass(reader, out, stop));
  out.map = Grid(static_cast<int>(shape.rows()), static_cast<int>(shape.cols()),
                 read_map(reader, place, full, shape, stop))
                .with_spans(visible_spans(out, place, shape, width));
  out.request = request;
  return out;
}

}  // namespace sinkscope
