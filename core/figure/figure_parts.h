// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "core/figure/make_figure.h"

namespace sinkscope {

// Pieces that several kinds of figures are put together from; only core/figure includes this.

// The axis of n cells; `names` (or the indices) are the tick candidates and the CSV's names.
FigureAxis column_axis(const std::string& label, int n, std::vector<std::string> names = {});
FigureAxis row_axis(const std::string& label, int n, std::vector<std::string> names = {});

std::vector<std::string> names_of(const std::vector<int>& numbers);

// How values are drawn along y where the request does not say.
struct ValueAxis {
  std::string label;
  Scale scale = Scale::linear;  // log leaves values ≤ 0 out
  bool from_zero = true;        // linear only
};
// An axis that holds all finite y of the series, or the range that the request fixes.
FigureAxis value_axis(const FigureRequest& request, const ValueAxis& defaults,
                      const std::vector<FigureSeries>& series);
// Gives every panel the same y axis, or one each where the request says so.
void share_value_axis(Figure& figure, const FigureRequest& request, const ValueAxis& defaults);
// Indices 0 … n−1 on x, half a step of air on both sides.
FigureAxis index_axis(const std::string& label, int n, std::vector<std::string> names = {});
void set_fixed_range(FigureAxis& axis, double low, double high);

// A map panel of its natural shape, not yet colored.
FigurePanel map_panel(const std::string& title, const Grid& grid, FigureAxis x, FigureAxis y);

// How maps are colored where the request does not say.
struct MapColors {
  std::string label;
  RangeRequest range;
  std::string colormap = "viridis";
  bool from_zero = false;  // of what cannot be negative: the lower end is 0 on a linear scale
};
RangeRequest fixed_range(double lo, double hi);

// Title, letters, font, width and columns of the page: `preferred` panels side by side where they
// have room and the request does not say otherwise. Before color_maps.
void arrange(Figure& figure, const FigureRequest& request, int preferred);

// Gives the panels with maps from `first` on a color range: one for all, or one each where the
// request says so. Adds a note about what lies outside, and whether ranges differ.
void color_maps(Figure& figure, const FigureRequest& request, const MapColors& defaults,
                std::size_t first = 0);

// Gains around 1 on a log scale, from 1/100 to 100 at most: a gain of 0 would leave no colors.
MapColors gain_colors(const std::vector<Grid>& grids);

// The first rows × columns of a grid, masked cells stay masked.
Grid cropped(const Grid& grid, int rows, int cols);

// Leaves only this part of every map; its colors, ranges and counts stay. Cut to the map's size.
// Throws Error{invalid_argument} where nothing is left, or no map is drawn.
void crop_to_view(Figure& figure, const FigureView& view);

// Throws Error{invalid_argument} for a model.
const CaptureReader& capture_of(const FigureInput& input);
// "SmolLM2: average attention".
std::string panel_title(const FigureInput& input, const std::string& what);
void add_note(Figure& figure, const std::string& text);

// The families of kinds; make_figure picks.
Figure attention_figure(const FigureRequest& request, const std::vector<FigureInput>& inputs);
Figure attention_grid_figure(const FigureRequest& request, const std::vector<FigureInput>& inputs);
Figure residual_figure(const FigureRequest& request, const std::vector<FigureInput>& inputs);
Figure channel_token_figure(const FigureRequest& request, const std::vector<FigureInput>& inputs);
Figure norm_gains_figure(const FigureRequest& request, const std::vector<FigureInput>& inputs);
Figure sink_heads_figure(const FigureRequest& request, const std::vector<FigureInput>& inputs);
Figure key_mass_figure(const FigureRequest& request, const std::vector<FigureInput>& inputs);
Figure logit_gap_figure(const FigureRequest& request, const std::vector<FigureInput>& inputs);
Figure value_norms_figure(const FigureRequest& request, const std::vector<FigureInput>& inputs);
Figure length_lines_figure(const FigureRequest& request, const std::vector<FigureInput>& inputs);
Figure depth_lines_figure(const FigureRequest& request, const std::vector<FigureInput>& inputs);
Figure kurtosis_figure(const FigureRequest& request, const std::vector<FigureInput>& inputs);
Figure compare_figure(const FigureRequest& request, const std::vector<FigureInput>& inputs);
Figure bound_figure(const FigureRequest& request, const std::vector<FigureInput>& inputs);
Figure shares_figure(const FigureRequest& request, const std::vector<FigureInput>& inputs);
Figure probes_figure(const FigureRequest& request, const std::vector<FigureInput>& inputs);
Figure preset_figure(const FigureRequest& request, const std::vector<FigureInput>& inputs);

}  // namespace sinkscope
