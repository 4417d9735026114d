// SPDX-License-Identifier: GPL-3.0-or-later
// The layouts of 2601.22966: Blues on a linear scale, 32 tokens × 32 sorted dimensions, cells above
// 100 in green, scores in boxes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/figure/attention_panel.h"
#include "core/figure/figure_parts.h"
#include "core/figure/norm_panel.h"
#include "core/figure/residual_panel.h"
#include "core/number_text.h"

namespace sinkscope {
namespace {

constexpr int kShown = 32;
constexpr double kGreenAbove = 100;
constexpr Argb kGreen = 0xFF2E8B57;

void set_ticks(FigureAxis& axis, const std::vector<int>& cells) {
  std::vector<FigureTick> ticks;
  const int n = static_cast<int>(std::abs(axis.high - axis.low) + 0.5);
  for (const int cell : cells)
    if (cell < n)
      ticks.push_back(
          {static_cast<double>(cell),
           axis.names.empty() ? std::to_string(cell) : axis.names[static_cast<std::size_t>(cell)],
           false});
  axis.ticks = std::move(ticks);
}

FigurePanel average_attention(const FigureInput& input) {
  FigureRequest mean;
  mean.kind = "attention-mean";
  AttentionRequest wanted;
  wanted.run = input.run;
  wanted.combine = Combine::mean;
  wanted.source = AttentionSource::window;
  const AttentionSnapshot snapshot = read_attention(capture_of(input), wanted);
  FigurePanel panel =
      attention_panel(input.name + " Average Attention Map Across All Layers", snapshot, kShown);
  set_ticks(panel.x, {0, 6, 12, 18, 24, 30});
  set_ticks(panel.y, {0, 6, 12, 18, 24, 30});
  panel.x.label = "Key Tokens";
  panel.y.label = "Query Tokens";
  panel.boxes.push_back(
      {FigureBox::Place::top_right,
       0,
       0,
       {"First Token Score", fmt::format("{:.3f}", first_column_mean(panel.maps.front().grid))}});
  return panel;
}

FigurePanel average_states(const FigureInput& input, std::string& note) {
  ResidualRequest wanted;
  wanted.run = input.run;
  wanted.n_dims = kShown;
  wanted.n_tokens = kShown;
  wanted.source = ResidualSource::window;
  const ResidualSnapshot snapshot = read_residual(capture_of(input), wanted);
  FigurePanel panel =
      residual_panel(input.name + " Average Hidden States Across All Layers", snapshot);
  set_ticks(panel.x, {0, 5, 12, 18, 24, 30});
  set_ticks(panel.y, {0, 6, 12, 18, 24, 30});
  panel.x.label = "Sorted Dimensions";
  panel.boxes.push_back(
      {FigureBox::Place::bottom_right,
       0,
       0,
       {fmt::format("Max Activation Value: {:.1f}", snapshot.max_abs.value),
        fmt::format("First 1‰ Activation Ratio: {:.1f}‰", snapshot.first_permille_ratio)}});
  note = residual_box_note(snapshot);
  return panel;
}

double largest_not_green(const std::vector<Grid>& grids) {
  double largest = 0;
  for (const Grid& grid : grids)
    for (int row = 0; row < grid.rows(); ++row)
      for (int col = 0; col < grid.cols(); ++col)
        if (grid.kind(row, col) == CellKind::finite && grid.at(row, col) <= kGreenAbove)
          largest = std::max(largest, grid.at(row, col));
  return largest > 0 ? largest : kGreenAbove;
}

// From 0 to the largest value that is not drawn green.
FigureColors state_colors(const std::vector<Grid>& grids) {
  FigureColors colors;
  colors.map = colormap("Blues");
  colors.map.over = kGreen;
  colors.range = find_range(grids, fixed_range(0, largest_not_green(grids)));
  colors.summary = summarize(grids, colors.range);
  if (colors.summary.above > 0) colors.above_text = ">100";
  return colors;
}

// A color range of its own for each of these panels, or one for all of them.
void color_states(Figure& figure, const std::vector<std::size_t>& panels, bool is_shared) {
  std::vector<Grid> grids;
  for (const std::size_t i : panels) grids.push_back(figure.panels[i].maps.front().grid);
  if (is_shared) figure.colors.push_back(state_colors(grids));
  for (std::size_t i = 0; i < panels.size(); ++i) {
    FigurePanel& panel = figure.panels[panels[i]];
    if (!is_shared) figure.colors.push_back(state_colors({grids[i]}));
    panel.maps.front().colors = static_cast<int>(figure.colors.size()) - 1;
    panel.has_color_bar = true;
  }
}

void color_attention(Figure& figure, const std::vector<std::size_t>& panels) {
  FigureColors colors;
  colors.map = colormap("Blues");
  std::vector<Grid> grids;
  for (const std::size_t i : panels) grids.push_back(figure.panels[i].maps.front().grid);
  colors.range = find_range(grids, fixed_range(0, 1));
  colors.summary = summarize(grids, colors.range);
  figure.colors.push_back(colors);
  for (const std::size_t i : panels) {
    figure.panels[i].maps.front().colors = static_cast<int>(figure.colors.size()) - 1;
    figure.panels[i].has_color_bar = true;
  }
}

// fig1: attention above hidden states, a column a model. fig8: beside each other, a row a model.
Figure attention_and_states(const FigureRequest& request, const std::vector<FigureInput>& inputs,
                            bool is_beside) {
  Figure figure;
  std::string note;
  const std::size_t n = inputs.size();
  figure.panels.resize(2 * n);
  std::vector<std::size_t> attention, states;
  for (std::size_t i = 0; i < n; ++i) {
    attention.push_back(is_beside ? 2 * i : i);
    states.push_back(is_beside ? 2 * i + 1 : n + i);
    figure.panels[attention.back()] = average_attention(inputs[i]);
    figure.panels[states.back()] = average_states(inputs[i], note);
  }
  FigureRequest layout = request;
  if (!layout.n_columns) layout.n_columns = is_beside ? 2 : static_cast<int>(n);
  arrange(figure, layout, 1);
  color_attention(figure, attention);
  color_states(figure, states, false);
  add_note(figure,
           "First Token Score: mean over the rows shown of the attention to key 0, row 0 "
           "included, all layers and heads.");
  add_note(figure, note);
  return figure;
}

Figure states_of_several(const FigureRequest& request, const std::vector<FigureInput>& inputs) {
  Figure figure;
  std::string note;
  std::vector<std::size_t> panels;
  for (const FigureInput& input : inputs) {
    panels.push_back(figure.panels.size());
    figure.panels.push_back(average_states(input, note));
  }
  FigureRequest layout = request;
  if (!layout.n_columns)
    layout.n_columns = static_cast<int>(std::min<std::size_t>(3, inputs.size()));
  arrange(figure, layout, 1);
  color_states(figure, panels, true);
  add_note(figure, note);
  return figure;
}

// What a strip is called in Figures 5 to 7; "" = it is not drawn there.
std::string strip_name(const std::string& role, bool with_pre_gains) {
  if (role == "ln1") return "Attention PreNorm Lambda";
  if (role == "ln2") return "FFN PreNorm Lambda";
  if (!with_pre_gains) return "";
  if (role == "ln1/pre_gain") return "Attention PreNorm Lambda1";
  return role == "ln2/pre_gain" ? "FFN PreNorm Lambda1" : "";
}

// fig6 has the gains in front of the norms (PreAffine's λ₁) where there are any.
Figure norm_strips(const FigureRequest& request, const std::vector<FigureInput>& inputs,
                   bool with_pre_gains) {
  Figure figure;
  std::vector<Grid> grids;
  for (const FigureInput& input : inputs) {
    const NormsSnapshot snapshot = norms_for(request, input);
    for (const NormStrip& strip : snapshot.strips) {
      const std::string what = strip_name(strip.role, with_pre_gains);
      if (what.empty()) continue;
      FigurePanel panel = norm_panel(inputs.size() > 1 ? input.name + ": " + what : what, strip);
      panel.x.label = "Hidden Dimension";
      std::erase_if(panel.boxes,
                    [&](const FigureBox& box) { return &box != &panel.boxes.front(); });
      grids.push_back(strip.map);
      figure.panels.push_back(std::move(panel));
    }
  }
  if (figure.panels.empty())
    throw Error(
        ErrorKind::not_found,
        fmt::format("{}: has neither an attention nor an FFN pre-norm", inputs.front().name));
  FigureRequest layout = request;
  if (!layout.n_columns) layout.n_columns = 1;
  arrange(figure, layout, 1);
  if (!request.width_mm) figure.width_mm = 170;
  FigureColors colors;
  colors.map = colormap("Blues");
  RangeRequest range;
  range.mode = RangeMode::min_max;
  const ValueRange extent = find_range(grids, range);
  colors.range = find_range(grids, fixed_range(0, extent.hi));
  colors.summary = summarize(grids, colors.range);
  figure.colors.push_back(colors);
  for (FigurePanel& panel : figure.panels) panel.has_color_bar = true;
  add_note(figure,
           "Effective weights, sign left out; starred: the dimensions that deviate most from "
           "1 by ratio; box: the cell that deviates most, with sign.");
  return figure;
}

}  // namespace

Figure preset_figure(const FigureRequest& request, const std::vector<FigureInput>& inputs) {
  const std::string name = request.preset.substr(request.preset.find('/') + 1);
  if (name == "fig1") return attention_and_states(request, inputs, false);
  if (name == "fig8") return attention_and_states(request, inputs, true);
  if (name == "fig2") return states_of_several(request, inputs);
  return norm_strips(request, inputs, name == "fig6");
}

}  // namespace sinkscope
