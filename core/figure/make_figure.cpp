// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/figure/make_figure.h"

#include <fmt/format.h>

#include <map>

#include "core/figure/figure_kinds.h"
#include "core/figure/figure_parts.h"
#include "core/run_done.h"

namespace sinkscope {
namespace {

// What is drawn ends with the last whole layer: whoever sees the figure is told.
void note_unfinished(const std::vector<FigureInput>& inputs, Figure& figure) {
  for (const FigureInput& input : inputs)
    if (input.capture != nullptr && !is_run_done(*input.capture, input.run))
      figure.notes.push_back({fmt::format("{}: an unfinished recording, {} of {} layers are there.",
                                          input.name, input.capture->whole_layers(input.run),
                                          input.capture->model(input.run).n_layers),
                              true});
}

}  // namespace

Figure make_figure(const FigureRequest& request, const std::vector<FigureInput>& inputs) {
  check_request(request);
  using Maker = Figure (*)(const FigureRequest&, const std::vector<FigureInput>&);
  static const std::map<std::string, Maker> makers = {
      {"attention-mean", attention_figure},
      {"attention-head", attention_figure},
      {"attention-grid", attention_grid_figure},
      {"residual-sorted", residual_figure},
      {"norm-gains", norm_gains_figure},
      {"sink-heads", sink_heads_figure},
      {"key-mass", key_mass_figure},
      {"logit-gap", logit_gap_figure},
      {"value-norms", value_norms_figure},
      {"length-lines", length_lines_figure},
      {"depth-lines", depth_lines_figure},
      {"kurtosis", kurtosis_figure},
      {"channel-token", channel_token_figure},
      {"compare", compare_figure},
      {"bound", bound_figure},
      {"shares", shares_figure},
      {"probes", probes_figure},
  };
  Figure figure = request.preset.empty() ? makers.at(request.kind)(request, inputs)
                                         : preset_figure(request, inputs);
  if (request.view) crop_to_view(figure, *request.view);
  note_unfinished(inputs, figure);
  return figure;
}

}  // namespace sinkscope
