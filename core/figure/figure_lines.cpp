// SPDX-License-Identifier: GPL-3.0-or-later
// value-norms, length-lines, depth-lines, kurtosis: lines over depth or position.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/figure/attention_panel.h"
#include "core/figure/figure_parts.h"
#include "core/residual_metrics.h"
#include "core/sink_report.h"
#include "core/snapshot/overview_snapshot.h"

namespace sinkscope {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<double> as_doubles(const std::vector<int>& values) {
  return {values.begin(), values.end()};
}

FigurePanel line_panel(const std::string& title, std::vector<FigureSeries> series, FigureAxis x,
                       FigureAxis y, double height_ratio) {
  FigurePanel panel;
  panel.title = title;
  panel.series = std::move(series);
  panel.x = std::move(x);
  panel.y = std::move(y);
  panel.height_ratio = height_ratio;
  return panel;
}

double largest_x(const std::vector<FigureSeries>& series) {
  double largest = 1;
  for (const FigureSeries& one : series)
    for (const double x : one.x) largest = std::max(largest, x);
  return largest;
}

// Positions or blocks 0 … the largest that a series has.
FigureAxis whole_axis(const std::string& label, const std::vector<FigureSeries>& series) {
  const double last = largest_x(series);
  FigureAxis axis = index_axis(label, static_cast<int>(last) + 1);
  set_fixed_range(axis, -0.02 * last, 1.02 * last);
  return axis;
}

// The mean over value heads of ‖v‖ of every token in one layer.
std::vector<double> value_norms_of(const std::vector<double>& values, std::size_t layer,
                                   std::size_t n_heads, std::size_t n_tokens) {
  std::vector<double> norms(n_tokens, 0);
  for (std::size_t head = 0; head < n_heads; ++head)
    for (std::size_t token = 0; token < n_tokens; ++token)
      norms[token] +=
          values[(layer * n_heads + head) * n_tokens + token] / static_cast<double>(n_heads);
  return norms;
}

FigureSeries line_of(const DepthLine& line, const std::string& name, int color,
                     FigureSeries::Style style = FigureSeries::Style::line) {
  return {name, style, color, as_doubles(line.positions), line.values};
}

}  // namespace

Figure value_norms_figure(const FigureRequest& request, const std::vector<FigureInput>& inputs) {
  Figure figure;
  for (const FigureInput& input : inputs) {
    const CaptureReader& capture = capture_of(input);
    if (!capture.has(input.run, "attention/value_norm"))
      throw Error(ErrorKind::not_found, fmt::format("{}: holds no value norms", input.name));
    const std::vector<std::int64_t> dims = capture.dims(input.run, "attention/value_norm");
    const auto n_heads = static_cast<std::size_t>(dims[1]), n = static_cast<std::size_t>(dims[2]);
    const std::vector<double> values = capture.read_f64(input.run, "attention/value_norm");
    const std::vector<int> layers = capture.read_i32(input.run, "attention/layers");
    FigureSeries first{"first token", FigureSeries::Style::line, 1, as_doubles(layers), {}};
    FigureSeries rest{"median of the others", FigureSeries::Style::line, 0, as_doubles(layers), {}};
    for (std::size_t layer = 0; layer < layers.size(); ++layer) {
      const std::vector<double> norms = value_norms_of(values, layer, n_heads, n);
      first.y.push_back(norms.front());
      rest.y.push_back(lower_median(std::span(norms).subspan(1)));
    }
    const std::vector<FigureSeries> series = {first, rest};
    figure.panels.push_back(line_panel(panel_title(input, "norm of the values"), series,
                                       whole_axis("Layer", series), {}, 0.5));
  }
  arrange(figure, request, 1);
  share_value_axis(figure, request, {"Mean ‖v‖ over value heads", Scale::log, true});
  add_note(figure,
           "‖v‖: Euclidean norm of a token's value, averaged over the value heads of a layer. The "
           "others: their lower median. Sink tokens have small values.");
  return figure;
}

Figure length_lines_figure(const FigureRequest& request, const std::vector<FigureInput>& inputs) {
  Figure figure;
  std::vector<FigureSeries> series;
  for (const FigureInput& input : inputs) {
    const AttentionSnapshot snapshot = attention_for(request, input);
    if (snapshot.cell_size > 1)
      throw Error(ErrorKind::unsupported,
                  fmt::format("{}: maps of {} tokens are pooled; --tokens has no part in that",
                              input.name, snapshot.facts.seq_len()));
    FigureSeries line{input.name,
                      FigureSeries::Style::line,
                      static_cast<int>(series.size()),
                      as_doubles(snapshot.queries),
                      {}};
    for (int row = 0; row < snapshot.map.rows(); ++row) line.y.push_back(snapshot.map.at(row, 0));
    if (request.n_tokens && line.x.size() > static_cast<std::size_t>(*request.n_tokens)) {
      line.x.resize(static_cast<std::size_t>(*request.n_tokens));
      line.y.resize(line.x.size());
    }
    series.push_back(std::move(line));
    if (&input == &inputs.back()) add_note(figure, fmt::format("Map: {}.", snapshot.source_text));
  }
  FigureSeries even{
      "even attention, 1/(t + 1)", FigureSeries::Style::dashed, kReferenceColor, {}, {}};
  for (double t = 0; t <= largest_x(series); ++t) {
    even.x.push_back(t);
    even.y.push_back(1 / (t + 1));
  }
  series.push_back(even);
  figure.panels.push_back(line_panel("Attention to the first token", series,
                                     whole_axis("Query position t", series), {}, 0.6));
  arrange(figure, request, 1);
  share_value_axis(figure, request, {"Attention to token 0", Scale::linear, true});
  add_note(figure,
           fmt::format(
               "Mean over {} and {}.",
               request.layer ? fmt::format("layer {}", *request.layer) : std::string("all layers"),
               request.head ? fmt::format("head {}", *request.head) : std::string("all heads")));
  return figure;
}

Figure depth_lines_figure(const FigureRequest& request, const std::vector<FigureInput>& inputs) {
  std::vector<FigureSeries> sizes, scores, kurtosis;
  std::vector<std::string> conventions;
  const bool is_alone = inputs.size() == 1;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    OverviewRequest wanted;
    wanted.run = inputs[i].run;
    const OverviewSnapshot snapshot = read_overview(capture_of(inputs[i]), wanted);
    const int color = static_cast<int>(i);
    const auto name = [&](const DepthLine& line) { return is_alone ? line.name : inputs[i].name; };
    sizes.push_back(line_of(snapshot.max_abs, name(snapshot.max_abs), color));
    if (is_alone) sizes.push_back(line_of(snapshot.median_abs, snapshot.median_abs.name, 1));
    if (!snapshot.layers.empty()) {
      if (is_alone) scores.push_back(line_of(snapshot.max_score, snapshot.max_score.name, 1));
      scores.push_back(line_of(snapshot.mean_score, name(snapshot.mean_score), color));
    }
    kurtosis.push_back(line_of(snapshot.kurtosis, name(snapshot.kurtosis), color));
    if (i == 0)
      conventions = {
          fmt::format("{}: {}.", snapshot.max_abs.name, snapshot.max_abs.convention),
          fmt::format("{}: {}.", snapshot.mean_score.name, snapshot.mean_score.convention),
          fmt::format("{}: {}.", snapshot.kurtosis.name, snapshot.kurtosis.convention)};
  }
  Figure figure;
  // Three quantities: no range fits all of them.
  FigureRequest any_range = request;
  any_range.range.reset();
  const std::string states = "Block state (0 = before the first block)";
  figure.panels.push_back(
      line_panel("Size of the residual stream", sizes, whole_axis(states, sizes),
                 value_axis(any_range, {"|x|", Scale::log, false}, sizes), 0.35));
  if (!scores.empty()) {
    FigureRequest linear = any_range;
    linear.scale = Scale::linear;
    figure.panels.push_back(
        line_panel("Sink score of key 0", scores, whole_axis("Layer", scores),
                   value_axis(linear, {"Sink score", Scale::linear, true}, scores), 0.35));
  }
  figure.panels.push_back(
      line_panel("Kurtosis", kurtosis, whole_axis(states, kurtosis),
                 value_axis(any_range, {"Kurtosis", Scale::log, false}, kurtosis), 0.35));
  for (const std::string& convention : conventions) add_note(figure, convention);
  arrange(figure, request, 1);
  return figure;
}

Figure kurtosis_figure(const FigureRequest& request, const std::vector<FigureInput>& inputs) {
  static const std::vector<std::pair<std::string, std::string>> flavors = {
      {"pearson_tensor", "whole state"},
      {"pearson_channel_mean", "per dimension, mean"},
      {"pearson_channel_max", "per dimension, largest"},
      {"pearson_token_mean", "per token, mean"}};
  Figure figure;
  for (const FigureInput& input : inputs) {
    SinkOptions options;
    const SinkReport report = sink_report(capture_of(input), {input.run}, options);
    const ResidualReport& residual = report.runs.front().residual;
    std::vector<FigureSeries> series;
    for (const auto& [flavor, name] : flavors)
      for (const NamedColumn& column : residual.kurtosis) {
        if (column.first != flavor) continue;
        FigureSeries line{name, FigureSeries::Style::line, static_cast<int>(series.size()), {}, {}};
        for (std::size_t site = 0; site < column.second.size(); ++site) {
          if (residual.sites[site].ends_with("resid_mid")) continue;
          line.x.push_back(static_cast<double>(line.x.size()));
          line.y.push_back(std::isfinite(column.second[site]) ? column.second[site] : kNan);
        }
        series.push_back(std::move(line));
      }
    figure.panels.push_back(
        line_panel(panel_title(input, "kurtosis of the residual stream"), series,
                   whole_axis("Block state (0 = before the first block)", series), {}, 0.6));
  }
  arrange(figure, request, 1);
  share_value_axis(figure, request, {"Kurtosis m4/m2²", Scale::log, false});
  add_note(figure,
           "Pearson, population moments (a Gaussian has 3), of one block state: all tokens "
           "and dimensions as one list; per dimension over tokens; per token over "
           "dimensions. Never compare across these, or across lengths.");
  return figure;
}

}  // namespace sinkscope
