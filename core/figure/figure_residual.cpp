// SPDX-License-Identifier: GPL-3.0-or-later
// residual-sorted, channel-token.
#include <fmt/format.h>

#include <cmath>

#include "core/error.h"
#include "core/figure/figure_parts.h"
#include "core/figure/residual_panel.h"
#include "core/number_text.h"

namespace sinkscope {
namespace {

constexpr int kSortedColumns = 32;

DimOrder order_of(const std::string& order) {
  if (order == "natural") return DimOrder::natural;
  return order == "sorted-without-first" ? DimOrder::sorted_without_first : DimOrder::sorted;
}

std::string site_of(int layer) { return fmt::format("blocks.{}.hook_resid_post", layer); }

Grid magnitudes(const Grid& grid) {
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(grid.size()));
  for (int row = 0; row < grid.rows(); ++row)
    for (int col = 0; col < grid.cols(); ++col) values.push_back(std::abs(grid.at(row, col)));
  return {grid.rows(), grid.cols(), std::move(values)};
}

void label_with_tokens(FigurePanel& panel, const ResidualSnapshot& snapshot) {
  panel.y = row_axis("Tokens", snapshot.map.rows(), snapshot.token_labels);
}

}  // namespace

FigurePanel residual_panel(const std::string& title, const ResidualSnapshot& snapshot) {
  const bool is_natural = snapshot.request.order == DimOrder::natural;
  FigureAxis x = column_axis(is_natural ? "Dimension" : "Sorted dimensions (original index)",
                             snapshot.map.cols(),
                             is_natural && snapshot.request.n_dims == 0 ? std::vector<std::string>()
                                                                        : names_of(snapshot.dims));
  FigureAxis y = row_axis(
      "Tokens", snapshot.map.rows(),
      snapshot.tokens_per_row > 1 ? names_of(snapshot.tokens) : std::vector<std::string>());
  return map_panel(title, snapshot.map, std::move(x), std::move(y));
}

FigureBox residual_box(const ResidualSnapshot& snapshot) {
  return {FigureBox::Place::bottom_right,
          0,
          0,
          {fmt::format("Max activation {}", readable(snapshot.max_abs.value)),
           fmt::format("First 1‰ ratio {:.1f} ‰", snapshot.first_permille_ratio)}};
}

std::string residual_box_note(const ResidualSnapshot& snapshot) {
  return fmt::format(
      "Max activation: largest |x| over all block states, tokens and dimensions (2601.22966). "
      "First 1‰ ratio: share of the first {} of {} sorted dimensions in the sum of mean |x|, all "
      "tokens, token 0 included.",
      snapshot.first_permille_count, snapshot.full_order.size());
}

Figure residual_figure(const FigureRequest& request, const std::vector<FigureInput>& inputs) {
  Figure figure;
  std::vector<int> first_order;
  const bool is_signed = request.keeps_sign && request.layer;
  for (const FigureInput& input : inputs) {
    ResidualRequest wanted;
    wanted.run = input.run;
    if (request.layer) wanted.site = site_of(*request.layer);
    wanted.order = order_of(request.order);
    wanted.n_dims = request.n_dims.value_or(wanted.order == DimOrder::natural ? 0 : kSortedColumns);
    wanted.n_tokens = request.n_tokens.value_or(0);
    if (!request.dim_list.empty()) {
      wanted.order = DimOrder::given;
      wanted.given_order = request.dim_list;
      wanted.n_dims = request.n_dims.value_or(0);
    } else if (request.order == "first-input" && !first_order.empty()) {
      wanted.order = DimOrder::given;
      wanted.given_order = first_order;
    }
    ResidualSnapshot snapshot = read_residual(capture_of(input), wanted);
    if (first_order.empty()) first_order = snapshot.full_order;
    if (!is_signed) snapshot.map = magnitudes(snapshot.map);
    FigurePanel panel = residual_panel(panel_title(input, snapshot.title), snapshot);
    if (request.labels_tokens) label_with_tokens(panel, snapshot);
    panel.boxes.push_back(residual_box(snapshot));
    figure.panels.push_back(std::move(panel));
    if (&input != &inputs.back()) continue;
    add_note(figure, fmt::format("Shown: {}; {}.", snapshot.source_text, snapshot.order_text));
    add_note(figure, residual_box_note(snapshot));
  }
  arrange(figure, request, static_cast<int>(inputs.size()));
  MapColors colors{request.layer ? "|x|" : "Mean |x|", {}, "viridis", true};
  if (is_signed) {
    colors = {"x", {}, "blue-red", false};
    colors.range.center = 0;
  }
  color_maps(figure, request, colors);
  return figure;
}

Figure channel_token_figure(const FigureRequest& request, const std::vector<FigureInput>& inputs) {
  Figure figure;
  for (const FigureInput& input : inputs) {
    const CaptureReader& capture = capture_of(input);
    ResidualRequest wanted;
    wanted.run = input.run;
    wanted.order = DimOrder::natural;
    wanted.n_tokens = request.n_tokens.value_or(0);
    if (request.layer) {
      wanted.site = site_of(*request.layer);
    } else {
      // The state with the largest |x|.
      ResidualRequest average = wanted;
      average.n_tokens = 1;
      wanted.site = read_residual(capture, average).max_site;
    }
    ResidualSnapshot snapshot = read_residual(capture, wanted);
    snapshot.map = magnitudes(snapshot.map);
    FigurePanel panel = residual_panel(panel_title(input, "|x| at " + snapshot.title), snapshot);
    if (request.labels_tokens) label_with_tokens(panel, snapshot);
    panel.height_ratio = 0.6;
    const auto [value, token, dim] = snapshot.max_abs;
    panel.boxes.push_back(
        {FigureBox::Place::bottom_right,
         0,
         0,
         {fmt::format("Max |x| {}: token {}, dim {}", readable(value), token, dim)}});
    figure.panels.push_back(std::move(panel));
    if (&input == &inputs.back())
      add_note(figure,
               fmt::format("Shown: {}; dimensions in natural order.", snapshot.source_text));
  }
  arrange(figure, request, static_cast<int>(inputs.size()));
  MapColors colors{"|x|", {}, "viridis", false};
  colors.range.mode = RangeMode::min_max;
  colors.range.scale = Scale::symlog;
  color_maps(figure, request, colors);
  return figure;
}

}  // namespace sinkscope
