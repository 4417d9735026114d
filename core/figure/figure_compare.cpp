// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/figure/attention_panel.h"
#include "core/figure/figure_parts.h"
#include "core/figure/norm_panel.h"
#include "core/snapshot/compare_snapshot.h"
#include "core/snapshot/overview_snapshot.h"

namespace sinkscope {
namespace {

struct Sides {
  CompareSnapshot compared;
  MapColors colors;
  std::string x, y;  // axis labels
  std::vector<std::string> x_names;
};

CompareSide residual_side(const FigureInput& input, const FigureRequest& request,
                          std::vector<int>& order) {
  ResidualRequest wanted;
  wanted.run = input.run;
  if (request.layer) wanted.site = fmt::format("blocks.{}.hook_resid_post", *request.layer);
  wanted.n_dims = request.n_dims.value_or(32);
  wanted.n_tokens = request.n_tokens.value_or(0);
  if (!order.empty()) {
    wanted.order = DimOrder::given;
    wanted.given_order = order;
  }
  const ResidualSnapshot snapshot = read_residual(capture_of(input), wanted);
  if (order.empty()) order = snapshot.full_order;
  return compare_side(snapshot, input.name);
}

// Sink scores stand in the place of a map of layers and heads.
CompareSide heads_side(const FigureInput& input) {
  OverviewRequest wanted;
  wanted.run = input.run;
  const OverviewSnapshot snapshot = read_overview(capture_of(input), wanted);
  CompareSide side;
  side.kind = MapKind::norms;
  side.title = input.name;
  side.map = snapshot.gu;
  for (int head = 0; head < snapshot.gu.rows(); ++head) side.rows.push_back(head);
  side.cols = snapshot.layers;
  side.model = snapshot.facts.model;
  return side;
}

Sides sides_of(const FigureRequest& request, const std::vector<FigureInput>& inputs) {
  std::vector<CompareSide> sides;
  std::vector<int> order;
  for (const FigureInput& input : inputs) {
    if (request.of == "attention-mean") {
      sides.push_back(compare_side(attention_for(request, input), input.name));
    } else if (request.of == "residual-sorted") {
      sides.push_back(residual_side(input, request, order));
    } else if (request.of == "sink-heads") {
      sides.push_back(heads_side(input));
    } else {
      const NormsSnapshot norms = norms_for(request, input);
      sides.push_back(compare_side(norms, norms.strips.front(), input.name));
    }
  }
  Sides result;
  result.compared = compare(std::move(sides));
  if (request.of == "attention-mean") {
    result.colors = {"Attention probability", {}, "viridis", true};
    result.x = "Key tokens", result.y = "Query tokens";
  } else if (request.of == "residual-sorted") {
    result.colors = {request.layer ? "|x|" : "Mean |x|", {}, "viridis", true};
    result.x = "Dimensions in the order of the first", result.y = "Tokens";
    result.x_names = names_of(result.compared.sides.front().cols);
  } else if (request.of == "sink-heads") {
    result.colors = {"Sink score", fixed_range(0, 1), "viridis", true};
    result.x = "Layer", result.y = "Head";
  } else {
    std::vector<Grid> grids;
    for (const CompareSide& side : result.compared.sides) grids.push_back(side.map);
    result.colors = gain_colors(grids);
    result.x = "Hidden dimension", result.y = "Layer";
  }
  return result;
}

}  // namespace

Figure compare_figure(const FigureRequest& request, const std::vector<FigureInput>& inputs) {
  const Sides sides = sides_of(request, inputs);
  Figure figure;
  const auto add = [&](const std::string& title, const Grid& map) {
    std::vector<std::string> names = sides.x_names;
    if (names.size() != static_cast<std::size_t>(map.cols())) names.clear();
    FigurePanel panel = map_panel(title, map, column_axis(sides.x, map.cols(), names),
                                  row_axis(sides.y, map.rows()));
    figure.panels.push_back(std::move(panel));
  };
  for (const CompareSide& side : sides.compared.sides) add(side.title, side.map);
  for (const Difference& difference : sides.compared.differences)
    add("difference: " + difference.text, difference.map);
  arrange(figure, request, 3);

  // The difference has a range of its own, around zero.
  Figure originals = figure;
  originals.panels.resize(sides.compared.sides.size());
  originals.n_columns = static_cast<int>(originals.panels.size());
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
