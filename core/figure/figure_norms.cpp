// SPDX-License-Identifier: GPL-3.0-or-later
// norm-gains, and the strips of presets fig5 to fig7.
#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/figure/figure_parts.h"
#include "core/figure/norm_panel.h"
#include "core/number_text.h"

namespace sinkscope {

MapColors gain_colors(const std::vector<Grid>& grids) {
  constexpr double kFarthest = 100;
  MapColors colors{"|gain|", {}, "blue-red", false};
  colors.range.mode = RangeMode::min_max;
  colors.range.scale = Scale::log;
  colors.range.center = 1;
  if (find_range(grids, colors.range).hi > kFarthest) {
    colors.range = fixed_range(1 / kFarthest, kFarthest);
    colors.range.scale = Scale::log;
    colors.range.center = 1;
  }
  return colors;
}

NormsSnapshot norms_for(const FigureRequest& request, const FigureInput& input) {
  NormsRequest wanted;
  wanted.run = input.run;
  if (request.divides_by_median) wanted.view = GainView::over_median;
  NormsSnapshot snapshot = input.capture != nullptr ? read_norms_snapshot(*input.capture, wanted)
                                                    : norms_snapshot(input.norms, input.model.name,
                                                                     input.model.n_layers, wanted);
  // A strip needs layers to be one, and dimensions of the residual stream to be compared.
  const int d_model =
      input.capture != nullptr ? input.capture->model(input.run).d_model : input.model.d_model;
  std::erase_if(snapshot.strips, [&](const NormStrip& strip) {
    return strip.layers.size() < 2 || strip.map.cols() != d_model;
  });
  if (snapshot.strips.empty())
    throw Error(ErrorKind::not_found,
                fmt::format("{}: holds no norm that is repeated over layers", input.name));
  return snapshot;
}

FigurePanel norm_panel(const std::string& title, const NormStrip& strip) {
  FigurePanel panel = map_panel(title, strip.map,
                                column_axis("Hidden dimension (★ deviates most)", strip.map.cols()),
                                row_axis("Layer", strip.map.rows(), names_of(strip.layers)));
  panel.maps.front().is_about_one = true;
  panel.height_ratio = 0.24;
  for (const int dim : strip.starred)
    panel.x.ticks.push_back({static_cast<double>(dim), fmt::format("★{}", dim), true});
  for (const NormStrip::Box& box : strip.boxes)
    panel.boxes.push_back({FigureBox::Place::beside_point,
                           static_cast<double>(box.dim),
                           static_cast<double>(box.row),
                           {fmt::format("{:.3g}", box.value)}});
  return panel;
}

Figure norm_gains_figure(const FigureRequest& request, const std::vector<FigureInput>& inputs) {
  std::vector<NormsSnapshot> snapshots;
  std::size_t n_strips = 0;
  for (const FigureInput& input : inputs) {
    snapshots.push_back(norms_for(request, input));
    n_strips = std::max(n_strips, snapshots.back().strips.size());
  }
  Figure figure;
  // A column per input, a row per role; a model with fewer roles leaves its places empty.
  for (std::size_t row = 0; row < n_strips; ++row)
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (row >= snapshots[i].strips.size()) {
        figure.panels.emplace_back();
        continue;
      }
      const NormStrip& strip = snapshots[i].strips[row];
      FigurePanel panel = norm_panel(panel_title(inputs[i], strip.title), strip);
      if (row + 1 < snapshots[i].strips.size()) panel.x.label.clear();
      figure.panels.push_back(std::move(panel));
    }
  FigureRequest layout = request;
  layout.n_columns = static_cast<int>(inputs.size());
  arrange(figure, layout, 1);
  if (!request.width_mm) figure.width_mm = 170;
  std::vector<Grid> grids;
  for (const NormsSnapshot& snapshot : snapshots)
    for (const NormStrip& strip : snapshot.strips) grids.push_back(strip.map);
  MapColors colors = gain_colors(grids);
  if (request.divides_by_median) colors.label = "|gain / median|";
  color_maps(figure, request, colors);
  add_note(figure,
           fmt::format("Shown: {}, sign left out; starred: the dimensions that deviate most from 1 "
                       "by ratio; boxes: the cells that deviate most below and above, with sign.",
                       snapshots.front().view_text));
  return figure;
}

}  // namespace sinkscope
