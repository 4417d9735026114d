// SPDX-License-Identifier: GPL-3.0-or-later
// sink-heads, key-mass, logit-gap: what the statistics say about every head.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "core/error.h"
#include "core/figure/figure_parts.h"
#include "core/rescale/theory.h"
#include "core/sink_metrics.h"
#include "core/snapshot/overview_snapshot.h"

namespace sinkscope {
namespace {

constexpr double kEpsilon = 0.3;  // Gu et al. 2410.10781
constexpr int kFewestQueries = 8;
constexpr int kMostBars = 96;  // keys; beyond it lines are clearer

OverviewSnapshot overview_of(const FigureInput& input) {
  OverviewRequest wanted;
  wanted.run = input.run;
  return read_overview(capture_of(input), wanted);
}

// One statistic [A,H,T] of a run.
struct HeadTable {
  std::vector<int> layers;  // [A]
  int n_heads = 0, n_tokens = 0;
  std::vector<float> values;

  const float* row(std::size_t layer, int head) const {
    return values.data() +
           (layer * static_cast<std::size_t>(n_heads) + static_cast<std::size_t>(head)) *
               static_cast<std::size_t>(n_tokens);
  }
};

HeadTable read_heads(const CaptureReader& capture, const std::string& run,
                     const std::string& path) {
  HeadTable table;
  if (!capture.has(run, path))
    throw Error(ErrorKind::not_found,
                fmt::format("{}: {}: holds no {}", capture.path(), run, path));
  table.layers = capture.read_i32(run, "attention/layers");
  const std::vector<std::int64_t> dims = capture.dims(run, path);
  table.n_heads = static_cast<int>(dims[1]);
  table.n_tokens = static_cast<int>(dims[2]);
  table.values = capture.read_f32(run, path);
  return table;
}

// Mean and maximum over all heads of the attention that each key receives.
struct KeyMass {
  std::vector<double> mean, max;  // [T]; NaN for keys with too few later queries
};

// In a run that has no more keys than that, all of them count.
int fewest_queries(std::size_t n_tokens) { return n_tokens > kFewestQueries ? kFewestQueries : 0; }

KeyMass key_mass_of(const CaptureReader& capture, const std::string& run) {
  const HeadTable mass = read_heads(capture, run, "attention/key_mass");
  const std::vector<int> visible = capture.read_i32(run, "attention/visible");
  const auto n = static_cast<std::size_t>(mass.n_tokens);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  KeyMass result{std::vector<double>(n, nan), std::vector<double>(n, nan)};
  for (std::size_t key = 0; key < n; ++key) {
    double sum = 0, largest = nan;
    int heads = 0;
    for (std::size_t layer = 0; layer < mass.layers.size(); ++layer) {
      const int queries = visible[layer * n + key];
      if (queries <= fewest_queries(n)) continue;
      for (int head = 0; head < mass.n_heads; ++head) {
        const double score = mass.row(layer, head)[key] / queries;
        if (!std::isfinite(score)) continue;
        sum += score;
        ++heads;
        largest = std::isnan(largest) ? score : std::max(largest, score);
      }
    }
    if (heads == 0) continue;
    result.mean[key] = sum / heads;
    result.max[key] = largest;
  }
  return result;
}

std::vector<double> indices(std::size_t n) {
  std::vector<double> x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<double>(i);
  return x;
}

// Mean logit gap over the queries that see more than a few keys.
double mean_gap(const float* gaps, int n_tokens) {
  double sum = 0;
  int n = 0;
  for (int query = std::min(kFewestQueries, n_tokens - 1); query < n_tokens; ++query)
    if (std::isfinite(gaps[query])) {
      sum += gaps[query];
      ++n;
    }
  return n == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / n;
}

FigureSeries bound_line(double epsilon, int n_tokens, double low, double high) {
  const double gap = sink_gap(n_tokens, epsilon);
  return {fmt::format("bound for {:g} on one of {} keys: {:.1f}", 1 - epsilon, n_tokens, gap),
          epsilon == 0.1 ? FigureSeries::Style::dashed : FigureSeries::Style::line,
          kReferenceColor,
          {low, high},
          {gap, gap}};
}

}  // namespace

namespace {

// Of the sink scores; nullopt = a map of another name.
std::optional<ScoreKind> score_of(const std::string& score) {
  if (score == "gu") return ScoreKind::gu;
  if (score == "with-row0") return ScoreKind::with_row0;
  if (score == "without-row0") return ScoreKind::without_row0;
  return std::nullopt;
}

// Throws Error{not_found} with the names that there are.
const MechanismMap& mechanism_of(const OverviewSnapshot& snapshot, const FigureInput& input,
                                 const std::string& name) {
  std::string known = "gu, with-row0, without-row0";
  for (const MechanismMap& map : snapshot.mechanisms) {
    if (map.name == name) return map;
    known += ", " + map.name;
  }
  throw Error(ErrorKind::not_found,
              fmt::format("{}: --score: no map '{}', it has {}", input.name, name, known));
}

// The overview's further maps.
Figure mechanism_figure(const FigureRequest& request, const std::vector<FigureInput>& inputs) {
  Figure figure;
  bool is_share = true;
  for (const FigureInput& input : inputs) {
    const OverviewSnapshot snapshot = overview_of(input);
    const MechanismMap& map = mechanism_of(snapshot, input, request.score);
    is_share = is_share && map.is_share;
    figure.panels.push_back(
        map_panel(panel_title(input, map.name), map.values,
                  column_axis(map.col_title, map.values.cols(),
                              map.col_labels.empty() ? names_of(map.layers) : map.col_labels),
                  row_axis(map.row_title, map.values.rows(), map.row_labels)));
    add_note(figure, map.convention + ".");
  }
  arrange(figure, request, static_cast<int>(inputs.size()));
  color_maps(
      figure, request,
      {request.score, is_share ? fixed_range(0, 1) : RangeRequest{.mode = RangeMode::min_max},
       "viridis", true});
  return figure;
}

}  // namespace

Figure sink_heads_figure(const FigureRequest& request, const std::vector<FigureInput>& inputs) {
  const std::optional<ScoreKind> score = score_of(request.score);
  if (!score) return mechanism_figure(request, inputs);
  Figure figure;
  const ScoreKind kind = *score;
  for (const FigureInput& input : inputs) {
    const OverviewSnapshot snapshot = overview_of(input);
    const Grid& scores = snapshot.score(kind);
    if (scores.empty())
      throw Error(ErrorKind::not_found,
                  fmt::format("{}: holds no attention statistics", input.name));
    FigurePanel panel =
        map_panel(panel_title(input, kind == ScoreKind::gu ? "sink score of every head"
                                                           : "first-token score of every head"),
                  scores, column_axis("Layer", scores.cols(), names_of(snapshot.layers)),
                  row_axis("Head", scores.rows()));
    const SinkRatio& ratio = snapshot.sink_ratio;
    if (kind == ScoreKind::gu)
      add_note(figure,
               fmt::format("{}: sink ratio {:.1f} %, {} of {} heads above {:g}.", input.name,
                           100 * ratio.ratio, ratio.above, ratio.cells, kEpsilon));
    figure.panels.push_back(std::move(panel));
  }
  add_note(figure, describe(kind, 0) + ".");
  arrange(figure, request, static_cast<int>(inputs.size()));
  color_maps(figure, request,
             {kind == ScoreKind::gu ? "Sink score" : "First-token score", fixed_range(0, 1),
              "viridis", true});
  return figure;
}

Figure key_mass_figure(const FigureRequest& request, const std::vector<FigureInput>& inputs) {
  Figure figure;
  for (const FigureInput& input : inputs) {
    const CaptureReader& capture = capture_of(input);
    const KeyMass mass = key_mass_of(capture, input.run);
    const RunFacts facts = read_run_facts(capture, input.run);
    const std::vector<double> x = indices(mass.mean.size());
    FigurePanel panel;
    panel.title = panel_title(input, "attention received by each key");
    const bool has_bars = mass.mean.size() <= kMostBars;
    const FigureSeries mean{"mean over layers and heads",
                            has_bars ? FigureSeries::Style::bars : FigureSeries::Style::line, 0, x,
                            mass.mean};
    const FigureSeries strongest{"strongest head",
                                 has_bars ? FigureSeries::Style::dots : FigureSeries::Style::line,
                                 1, x, mass.max};
    // Of two lines the mean comes last: it must not disappear below the other.
    panel.series = {mean, strongest};
    if (!has_bars) std::swap(panel.series.front(), panel.series.back());
    panel.x =
        index_axis("Key token", static_cast<int>(x.size()),
                   request.labels_tokens ? facts.input.token_text : std::vector<std::string>());
    panel.x.is_sideways = request.labels_tokens;
    panel.height_ratio = 0.5;
    figure.panels.push_back(std::move(panel));
  }
  arrange(figure, request, 1);
  share_value_axis(figure, request, {"Mean attention received", Scale::linear, true});
  add_note(figure, fmt::format("Per head: sum over queries / number of queries that see the key "
                               "(Gu et al. 2410.10781). Keys with fewer than {} later queries are "
                               "left out: they light up by construction.",
                               kFewestQueries));
  return figure;
}

Figure logit_gap_figure(const FigureRequest& request, const std::vector<FigureInput>& inputs) {
  Figure figure;
  for (const FigureInput& input : inputs) {
    const CaptureReader& capture = capture_of(input);
    const HeadTable gaps = read_heads(capture, input.run, "attention/logit_gap");
    const OverviewSnapshot overview = overview_of(input);
    FigurePanel panel;
    panel.title = panel_title(input, "logit gap of every head");
    FigureSeries sinks{
        fmt::format("sink score > {:g}", kEpsilon), FigureSeries::Style::dots, 1, {}, {}},
        others{"other heads", FigureSeries::Style::dots, 0, {}, {}};
    for (std::size_t layer = 0; layer < gaps.layers.size(); ++layer)
      for (int head = 0; head < gaps.n_heads; ++head) {
        const bool is_sink = overview.gu.at(head, static_cast<int>(layer)) > kEpsilon;
        FigureSeries& series = is_sink ? sinks : others;
        series.x.push_back(static_cast<double>(layer));
        series.y.push_back(mean_gap(gaps.row(layer, head), gaps.n_tokens));
      }
    panel.series = {others, sinks};
    const double high = static_cast<double>(gaps.layers.size()) - 0.5;
    if (gaps.n_tokens > 2)
      for (const double epsilon : {0.1, 0.01})
        panel.series.push_back(bound_line(epsilon, gaps.n_tokens, -0.5, high));
    panel.x = index_axis("Layer", static_cast<int>(gaps.layers.size()), names_of(gaps.layers));
    panel.height_ratio = 0.6;
    figure.panels.push_back(std::move(panel));
  }
  arrange(figure, request, 1);
  share_value_axis(figure, request, {"Largest − median logit, nats", Scale::linear, true});
  add_note(figure,
           fmt::format("A dot is one head: mean over queries from {} on of max − median of "
                       "its scaled scores. Lines: ln((T − 1)(1 − ε)/ε), the gap that puts 1 "
                       "− ε on one of T keys when the others are equal.",
                       kFewestQueries));
  return figure;
}

}  // namespace sinkscope
