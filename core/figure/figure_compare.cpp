// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/figure/attention_panel.h"
#include "core/figure/figure_parts.h"
#include "core/snapshot/compare_snapshot.h"
#include "core/snapshot/norms_snapshot.h"
#include "core/snapshot/overview_snapshot.h"

namespace sinkscope {
namespace {

constexpr int kSortedColumns = 32;

struct Sides {
  CompareSnapshot compared;
  MapColors colors;
  std::string x, y;  // axis labels
  std::vector<std::string> x_names, y_names;
};

// The request of one side: its own layer and head where they are given side by side.
FigureRequest side_request(const FigureRequest& request, std::size_t i) {
  FigureRequest one = request;
  const auto place = [i](const std::vector<int>& list, std::optional<int>& field) {
    if (!list.empty()) field = list[i] < 0 ? std::nullopt : std::optional(list[i]);
  };
  place(request.layers, one.layer);
  place(request.heads, one.head);
  return one;
}

// What tells the sides apart: their inputs, and their layers and heads where these differ.
std::string side_title(const FigureRequest& request, const std::vector<FigureInput>& inputs,
                       std::size_t i) {
  std::string place;
  if (!request.layers.empty())
    place = request.layers[i] < 0 ? "all layers" : fmt::format("L{}", request.layers[i]);
  if (!request.heads.empty())
    place += request.heads[i] < 0 ? (place.empty() ? "all heads" : ", all heads")
                                  : fmt::format("H{}", request.heads[i]);
  const bool same_input = std::adjacent_find(request.inputs.begin(), request.inputs.end(),
                                             std::not_equal_to<>()) == request.inputs.end();
  if (place.empty() || !request.names.empty()) return inputs[i].name;
  return same_input ? place : inputs[i].name + " · " + place;
}

CompareSide residual_side(const FigureInput& input, const FigureRequest& request,
                          const std::string& title, std::vector<int>& order) {
  ResidualRequest wanted;
  wanted.run = input.run;
  if (request.layer) wanted.site = fmt::format("blocks.{}.hook_resid_post", *request.layer);
  wanted.order = request.order == "natural"                ? DimOrder::natural
                 : request.order == "sorted-without-first" ? DimOrder::sorted_without_first
                                                           : DimOrder::sorted;
  wanted.n_dims = request.n_dims.value_or(wanted.order == DimOrder::natural ? 0 : kSortedColumns);
  wanted.n_tokens = request.n_tokens.value_or(0);
  if (!order.empty() && wanted.order != DimOrder::natural) {
    wanted.order = DimOrder::given;
    wanted.given_order = order;
  }
  const ResidualSnapshot snapshot = read_residual(capture_of(input), wanted);
  if (order.empty()) order = snapshot.full_order;
  return compare_side(snapshot, title);
}

CompareSide heads_side(const FigureInput& input, const std::string& title) {
  OverviewRequest wanted;
  wanted.run = input.run;
  return compare_side(read_overview(capture_of(input), wanted), ScoreKind::gu, title);
}

CompareSide gains_side(const FigureInput& input, const FigureRequest& request,
                       const std::string& title) {
  NormsRequest wanted;
  wanted.run = input.run;
  wanted.roles = {request.role};
  if (request.divides_by_median) wanted.view = GainView::over_median;
  const NormsSnapshot norms =
      input.capture != nullptr
          ? read_norms_snapshot(*input.capture, wanted)
          : norms_snapshot(input.norms, input.model.name, input.model.n_layers, wanted);
  return compare_side(norms, norms.strips.front(), title);
}

bool any_negative(const std::vector<CompareSide>& sides) {
  return std::any_of(sides.begin(), sides.end(), [](const CompareSide& side) {
    const RangeSummary all = summarize({&side.map, 1}, {});
    return all.lowest && all.lowest->value < 0;
  });
}

Sides sides_of(const FigureRequest& request, const std::vector<FigureInput>& inputs) {
  std::vector<CompareSide> sides;
  std::vector<int> order;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const FigureRequest one = side_request(request, i);
    const std::string title = side_title(request, inputs, i);
    if (request.of == "attention-mean") {
      sides.push_back(compare_side(attention_for(one, inputs[i]), title));
    } else if (request.of == "residual-sorted") {
      sides.push_back(residual_side(inputs[i], one, title, order));
    } else if (request.of == "sink-heads") {
      sides.push_back(heads_side(inputs[i], title));
    } else {
      sides.push_back(gains_side(inputs[i], one, title));
    }
  }
  Sides result;
  result.compared = compare(std::move(sides));
  const std::vector<CompareSide>& compared = result.compared.sides;
  if (request.of == "attention-mean") {
    result.colors = {"Attention probability", {}, "viridis", true};
    result.x = "Key tokens", result.y = "Query tokens";
  } else if (request.of == "residual-sorted") {
    // States have signs, averages of |x| have none.
    const bool is_signed = any_negative(compared);
    result.colors = {
        is_signed ? "x" : "Mean |x|", {}, is_signed ? "blue-red" : "viridis", !is_signed};
    if (is_signed) result.colors.range.center = 0;
    result.x = request.order == "natural" ? "Dimension" : "Dimensions in the order of the first";
    result.y = "Tokens";
    if (request.order != "natural") result.x_names = names_of(compared.front().cols);
  } else if (request.of == "sink-heads") {
    result.colors = {"Sink score", fixed_range(0, 1), "viridis", true};
    result.x = "Layer", result.y = "Head";
  } else {
    std::vector<Grid> grids;
    for (const CompareSide& side : compared) grids.push_back(side.map);
    result.colors = gain_colors(grids);
    result.x = "Hidden dimension", result.y = "Layer";
  }
  return result;
}

// Cells of a comparison are matched by what they stand for, which need not be 0, 1, 2 …
std::vector<std::string> names_unless_counting(const std::vector<int>& numbers) {
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (numbers[i] != static_cast<int>(i)) return names_of(numbers);
  return {};
}

}  // namespace

Figure compare_figure(const FigureRequest& request, const std::vector<FigureInput>& inputs) {
  const Sides sides = sides_of(request, inputs);
  Figure figure;
  const auto add = [&](const std::string& title, const Grid& map, const std::vector<int>& rows,
                       const std::vector<int>& cols) {
    figure.panels.push_back(map_panel(title, map,
                                      column_axis(sides.x, map.cols(), names_unless_counting(cols)),
                                      row_axis(sides.y, map.rows(), names_unless_counting(rows))));
  };
  for (const CompareSide& side : sides.compared.sides) {
    add(side.title, side.map, side.rows, side.cols);
    figure.panels.back().maps.front().is_about_one = side.kind == MapKind::norms;
  }
  for (const Difference& difference : sides.compared.differences)
    add("difference: " + difference.text, difference.map, difference.rows, difference.cols);
  arrange(figure, request, 3);

  // The difference has a range of its own, around zero.
  Figure originals = figure;
  originals.panels.resize(sides.compared.sides.size());
  color_maps(originals, request, sides.colors);
  for (std::size_t i = 0; i < originals.panels.size(); ++i) figure.panels[i] = originals.panels[i];
  figure.colors = originals.colors;
  figure.notes = originals.notes;
  FigureRequest plain = request;
  plain.range.reset();
  plain.scale.reset();
  plain.colormap.clear();
  MapColors difference{"Difference", {}, "blue-red", false};
  difference.range.center = 0;
  color_maps(figure, plain, difference, originals.panels.size());
  for (const std::string& note : sides.compared.notes) figure.notes.push_back({note, true});
  return figure;
}

}  // namespace sinkscope
