// SPDX-License-Identifier: GPL-3.0-or-later
// attention-mean, attention-head, attention-grid.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/figure/attention_panel.h"
#include "core/figure/figure_parts.h"
#include "core/snapshot/thumbnail_snapshot.h"

namespace sinkscope {
namespace {

constexpr double kPageMm = 215;  // the height of a page's text

std::string picked(const char* what, const std::optional<int>& one, std::size_t n) {
  return one ? fmt::format("{} {}", what, *one) : fmt::format("all {} {}s", n, what);
}

std::string what_is_shown(const FigureRequest& request, const AttentionSnapshot& snapshot) {
  if (request.kind == "attention-head") return snapshot.title;
  return fmt::format(
      "{} attention, {}, {}", request.takes_maximum ? "largest" : "average",
      picked("layer", request.layer, snapshot.facts.attention_layers.size()),
      picked("head", request.head, static_cast<std::size_t>(snapshot.facts.model.n_heads)));
}

void label_with_tokens(FigurePanel& panel, const AttentionSnapshot& snapshot, const Grid& map) {
  std::vector<std::string> queries = snapshot.query_labels, keys = snapshot.key_labels;
  queries.resize(static_cast<std::size_t>(map.rows()));
  keys.resize(static_cast<std::size_t>(map.cols()));
  panel.x = column_axis("Key tokens", map.cols(), std::move(keys));
  panel.y = row_axis("Query tokens", map.rows(), std::move(queries));
  panel.x.is_sideways = true;
}

// All heads of all layers in one grid: layers downwards, heads to the right, a masked line between.
Grid mosaic(const ThumbnailSnapshot& snapshot) {
  const int n_layers = static_cast<int>(snapshot.layers.size()), side = snapshot.side + 1;
  const int rows = n_layers * side - 1, cols = snapshot.n_heads * side - 1;
  const float nothing = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> values(static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols),
                            nothing);
  for (int slot = 0; slot < n_layers; ++slot)
    for (int head = 0; head < snapshot.n_heads; ++head) {
      const Grid map = snapshot.map(slot, head);
      for (int row = 0; row < map.rows(); ++row)
        for (int col = map.span(row).begin; col < map.span(row).end; ++col)
          values[static_cast<std::size_t>(slot * side + row) * static_cast<std::size_t>(cols) +
                 static_cast<std::size_t>(head * side + col)] =
              static_cast<float>(map.at(row, col));
    }
  return {rows, cols, std::move(values)};
}

FigureAxis tile_axis(const std::string& label, const std::vector<int>& numbers, int side,
                     bool is_column) {
  const int n = static_cast<int>(numbers.size());
  FigureAxis axis =
      is_column ? column_axis(label, n * (side + 1) - 1) : row_axis(label, n * (side + 1) - 1);
  axis.ticks.clear();
  for (int i = 0; i < n; ++i)
    axis.ticks.push_back({i * (side + 1) + (side - 1) / 2.0,
                          std::to_string(numbers[static_cast<std::size_t>(i)]), false});
  return axis;
}

AttentionSource source_of(const std::string& source) {
  if (source == "pattern") return AttentionSource::pattern;
  if (source == "window") return AttentionSource::window;
  return source == "thumbnail" ? AttentionSource::thumbnail : AttentionSource::automatic;
}

}  // namespace

AttentionSnapshot attention_for(const FigureRequest& request, const FigureInput& input) {
  AttentionRequest wanted;
  wanted.run = input.run;
  if (request.layer) wanted.layers = {*request.layer};
  if (request.head) wanted.heads = {*request.head};
  wanted.combine = request.takes_maximum ? Combine::max : Combine::mean;
  if (request.kind == "attention-head") {
    wanted.layers = {request.layer.value_or(0)};
    wanted.heads = {request.head.value_or(0)};
    wanted.combine = Combine::single;
  }
  if (request.removes_sink) wanted.view = AttentionView::sink_removed;
  wanted.source = source_of(request.source);
  return read_attention(capture_of(input), wanted);
}

double first_column_mean(const Grid& map) {
  double sum = 0;
  for (int row = 0; row < map.rows(); ++row) sum += map.at(row, 0);
  return sum / map.rows();
}

FigurePanel attention_panel(const std::string& title, const AttentionSnapshot& snapshot,
                            std::optional<int> n_tokens) {
  const int n = std::min(n_tokens.value_or(snapshot.map.rows()), snapshot.map.rows());
  const Grid map = cropped(snapshot.map, n, n);
  std::vector<int> queries = snapshot.queries, keys = snapshot.keys;
  queries.resize(static_cast<std::size_t>(map.rows()));
  keys.resize(static_cast<std::size_t>(map.cols()));
  FigurePanel panel = map_panel(title, map, column_axis("Key tokens", map.cols()),
                                row_axis("Query tokens", map.rows()));
  if (snapshot.cell_size > 1) {
    panel.x = column_axis("Key tokens", map.cols(), names_of(keys));
    panel.y = row_axis("Query tokens", map.rows(), names_of(queries));
  }
  return panel;
}

Figure attention_figure(const FigureRequest& request, const std::vector<FigureInput>& inputs) {
  Figure figure;
  std::vector<std::string> sources;
  for (const FigureInput& input : inputs) {
    const AttentionSnapshot snapshot = attention_for(request, input);
    FigurePanel panel = attention_panel(panel_title(input, what_is_shown(request, snapshot)),
                                        snapshot, request.n_tokens);
    const Grid& map = panel.maps.front().grid;
    if (request.labels_tokens) label_with_tokens(panel, snapshot, map);
    const bool has_score = !request.view && !request.takes_maximum && !request.removes_sink &&
                           snapshot.cell_size == 1 && snapshot.queries.front() == 0;
    if (has_score)
      panel.boxes.push_back(
          {FigureBox::Place::top_right,
           0,
           0,
           {"First token score", fmt::format("{:.3f} (row 0 in)", first_column_mean(map))}});
    figure.panels.push_back(std::move(panel));
    const std::string whose = inputs.size() > 1 ? "Map of " + input.name : "Map";
    sources.push_back(fmt::format("{}: {}.", whose, snapshot.source_text));
    if (has_score && &input == &inputs.back())
      sources.emplace_back(
          "First token score: mean over the rows shown of the attention to key 0, row 0 included "
          "(2601.22966).");
  }
  arrange(figure, request, static_cast<int>(inputs.size()));
  color_maps(figure, request, {"Attention probability", {}, "viridis", true});
  for (const std::string& source : sources) add_note(figure, source);
  if (request.removes_sink)
    add_note(figure, "Key 0 is taken away and each row divided by what is left of it.");
  return figure;
}

Figure attention_grid_figure(const FigureRequest& request, const std::vector<FigureInput>& inputs) {
  Figure figure;
  for (const FigureInput& input : inputs) {
    ThumbnailRequest wanted;
    wanted.run = input.run;
    const ThumbnailSnapshot snapshot = read_thumbnails(capture_of(input), wanted);
    std::vector<int> heads;
    for (int head = 0; head < snapshot.n_heads; ++head) heads.push_back(head);
    FigurePanel panel = map_panel(panel_title(input, "attention of every head"), mosaic(snapshot),
                                  tile_axis("Head", heads, snapshot.side, true),
                                  tile_axis("Layer", snapshot.layers, snapshot.side, false));
    panel.maps.front().nan_is_paper = true;
    // Small maps stay square where the page is high enough for it.
    panel.height_ratio =
        std::min(static_cast<double>(snapshot.layers.size()) / std::max(1, snapshot.n_heads),
                 kPageMm / (0.75 * request.width_mm.value_or(inputs.size() > 1 ? 60 : 85)));
    figure.panels.push_back(std::move(panel));
    if (&input == &inputs.back())
      add_note(figure,
               fmt::format("Each small map: queries down, keys right, {} × {} cells; a cell shows "
                           "the largest probability of its positions.",
                           snapshot.side, snapshot.side));
  }
  arrange(figure, request, static_cast<int>(inputs.size()));
  color_maps(figure, request, {"Attention probability", fixed_range(0, 1), "viridis", true});
  return figure;
}

}  // namespace sinkscope
