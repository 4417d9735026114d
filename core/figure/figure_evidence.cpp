// SPDX-License-Identifier: GPL-3.0-or-later
// bound, shares, probes: what outliers do to everything else.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/error.h"
#include "core/figure/figure_parts.h"
#include "core/rescale/report.h"
#include "core/rescale/theory.h"
#include "core/residual_metrics.h"

namespace sinkscope {
namespace {

using Style = FigureSeries::Style;

struct NormKindName {
  const char* role;
  const char* name;
};
constexpr NormKindName kNormKinds[] = {{"ln1", "attention norms"},
                                       {"ln2", "FFN norms"},
                                       {"ln_final", "final norm"},
                                       {"ln1_post", "norms behind attention"},
                                       {"ln2_post", "norms behind the FFN"}};

std::string outlier_text(const RescaleOptions& options) {
  if (options.dims.empty()) return "the token's largest dimension";
  return fmt::format("dimension{} {}", options.dims.size() == 1 ? "" : "s",
                     fmt::join(options.dims, ", "));
}

// Evidence comes from a file, which is its model's source; without one, the panel's name says it.
const std::string& file_of(const FigureInput& input) {
  return input.model.source.empty() ? input.name : input.model.source;
}

// Of a capture, or as sinkscope rescale -o F.json wrote it.
RescaleReport evidence_of(const FigureRequest& request, const FigureInput& input) {
  if (request.n_dims)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{}: expected --dim-list D,E for chosen dimensions, found --dims, the "
                            "number of columns of residual-sorted",
                            request.kind));
  if (input.evidence.empty())
    return rescale_report(capture_of(input), input.run, {request.dim_list, request.key});
  RescaleReport report = parse_rescale_json(input.evidence, file_of(input));
  if (!request.dim_list.empty() && request.dim_list != report.options.dims)
    throw Error(
        ErrorKind::invalid_argument,
        fmt::format("{}: expected the evidence of dimensions {}, found that of {}", input.name,
                    fmt::join(request.dim_list, ", "), outlier_text(report.options)));
  if (request.key != 0 && request.key != report.options.key)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{}: expected the evidence of key {}, found that of key {}", input.name,
                            request.key, report.options.key));
  return report;
}

// Those of all inputs, and what d means in them.
struct AllEvidence {
  std::vector<RescaleReport> reports;
  std::string outlier;
};
AllEvidence evidence_of(const FigureRequest& request, const std::vector<FigureInput>& inputs) {
  AllEvidence all;
  for (const FigureInput& input : inputs) {
    all.reports.push_back(evidence_of(request, input));
    const std::string outlier = outlier_text(all.reports.back().options);
    if (all.outlier.find(outlier) == std::string::npos)
      all.outlier += (all.outlier.empty() ? "" : "; ") + outlier;
  }
  return all;
}

// An empty panel would look like a result.
[[noreturn]] void refuse_without_norms(const FigureInput& input, const RescaleReport& report) {
  std::string why;
  for (const auto& [quantity, needs] : report.not_computed)
    if (quantity.starts_with("the bound at"))
      why += fmt::format("{}{}: {}", why.empty() ? " (" : "; ", quantity, needs);
  throw Error(ErrorKind::invalid_argument,
              fmt::format("{}: expected RMS norms, which the bound is about, found none{}",
                          input.name, why.empty() ? "" : why + ")"));
}

FigurePanel plot(const std::string& title, const std::string& x_label, std::vector<FigureSeries> s,
                 double height_ratio) {
  FigurePanel panel;
  panel.title = title;
  panel.series = std::move(s);
  panel.x.label = x_label;
  panel.height_ratio = height_ratio;
  return panel;
}

// From 0 to 1, a tick each fifth.
void unit_axis(FigureAxis& axis) {
  set_fixed_range(axis, 0, 1);
  axis.ticks.clear();
  for (int i = 0; i <= 5; ++i) axis.ticks.push_back({i / 5.0, fmt::format("{:.1f}", i / 5.0)});
}

// Every token of every norm of one kind: r against ‖y‖_rms / ‖λ‖_∞, below the bound's curve for the
// largest gain ratio among them.
FigurePanel bound_panel(const RescaleReport& report, const NormKindName& kind,
                        const std::string& title) {
  FigureSeries first{"first token", Style::dots, 1, {}, {}}, rest{"others", Style::dots, 0, {}, {}};
  double ratio = 0;
  for (const NormEvidence& e : report.norms) {
    if (e.role != kind.role) continue;
    for (std::size_t t = 0; t < e.r2.size(); ++t) {
      if (!std::isfinite(e.output_rms[t]) || !std::isfinite(e.r2[t])) continue;
      FigureSeries& to = t == 0 ? first : rest;
      to.x.push_back(std::sqrt(e.r2[t]));
      to.y.push_back(e.output_rms[t] / e.gain_max);
      ratio = std::max(ratio, e.gain_dim[t] / e.gain_max);
    }
  }
  FigureSeries curve{fmt::format("bound, |λ_d| = {:.2g} max|λ|", ratio), Style::line, 2, {}, {}};
  FigureSeries silent{"bound, λ_d = 0", Style::dashed, kReferenceColor, {}, {}};
  for (int i = 0; i <= 200; ++i) {
    const double r = i / 200.0;
    curve.x.push_back(r);
    curve.y.push_back(upper_bound_1(r * r, 1, ratio));
    silent.x.push_back(r);
    silent.y.push_back(upper_bound_1(r * r, 1, 0));
  }
  FigurePanel panel = plot(title, "r = |h_d| / ‖h‖", {rest, first, curve, silent}, 0.8);
  unit_axis(panel.x);
  return panel;
}

// Median over tokens of what the norms of one kind say, layer by layer.
FigureSeries over_depth(const RescaleReport& report, const char* role, const std::string& name,
                        int color, bool first_token) {
  FigureSeries line{name, first_token ? Style::line : Style::dashed, color, {}, {}};
  for (const NormEvidence& e : report.norms) {
    if (e.role != role || e.layer < 0) continue;
    const double alpha =
        first_token ? e.alpha.front() : finite_median(std::span(e.alpha).subspan(1));
    if (!std::isfinite(alpha)) continue;
    line.x.push_back(e.layer);
    line.y.push_back(alpha);
  }
  return line;
}

// 1 − p on the key of each layer's strongest head.
FigureSeries attention_over_depth(const RescaleReport& report) {
  std::map<int, double> smallest;
  for (const HeadEvidence& e : report.heads) {
    const double factor = 1 - finite_median(e.p);
    const auto [known, is_new] = smallest.emplace(e.layer, factor);
    if (!is_new) known->second = std::min(known->second, factor);
  }
  FigureSeries line{"1 − p, strongest head", Style::line, 3, {}, {}};
  for (const auto& [layer, factor] : smallest) {
    line.x.push_back(layer);
    line.y.push_back(factor);
  }
  return line;
}

FigurePanel share_panel(const RescaleReport& report, const std::string& title) {
  std::vector<FigureSeries> series;
  int color = 0;
  for (const NormKindName& kind : kNormKinds) {
    FigureSeries dots{kind.name, Style::dots, color, {}, {}};
    for (const NormEvidence& e : report.norms) {
      if (e.role != kind.role) continue;
      for (std::size_t t = 0; t < e.r2.size(); ++t) {
        if (!std::isfinite(e.share_after[t])) continue;
        dots.x.push_back(e.r2[t]);
        dots.y.push_back(e.share_after[t]);
      }
    }
    if (dots.x.empty() && std::string_view(kind.role).ends_with("_post")) continue;
    series.push_back(std::move(dots));
    ++color;
  }
  FigureSeries heads{fmt::format("heads, key {}", report.options.key), Style::dots, color, {}, {}};
  for (const HeadEvidence& e : report.heads) {
    heads.x.push_back(finite_median(e.p));
    heads.y.push_back(finite_median(e.share_after));
  }
  series.push_back(std::move(heads));
  series.push_back({"unchanged", Style::dashed, kReferenceColor, {0, 1}, {0, 1}});
  FigurePanel panel = plot(title, "Share before", std::move(series), 0.9);
  unit_axis(panel.x);
  return panel;
}

nlohmann::json probe_table_of(const FigureInput& input) {
  const auto refuse = [&](const std::string& found, ErrorKind kind = ErrorKind::invalid_argument) {
    throw Error(kind, fmt::format("{}: expected a table of sinkscope probe -o F.json, found {}",
                                  file_of(input), found));
  };
  if (input.evidence.empty()) refuse("a capture or a model");
  const auto json = nlohmann::json::parse(input.evidence, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) refuse("no JSON", ErrorKind::corrupt);
  if (!json.is_object() || json.value("schema", nlohmann::json()) != "sinkscope.probe/1" ||
      !json.contains("probes") || !json["probes"].is_array())
    refuse("another file");
  for (const auto& probe : json["probes"])
    for (const char* key : {"reader", "at", "mode"})
      if (!probe.is_object() || !probe.contains(key) || !probe[key].is_string())
        refuse(fmt::format("a probe without \"{}\"", key), ErrorKind::corrupt);
  return json;
}

// One panel a reader and position filter: a bar a mode.
void add_probe_panels(Figure& figure, const FigureInput& input) {
  const nlohmann::json table = probe_table_of(input);
  const bool is_named = table.contains("model") && table["model"].is_string();
  const std::string name = is_named ? table["model"].get<std::string>() : input.name;
  std::vector<std::pair<std::string, std::string>> places;  // at, reader
  for (const auto& probe : table["probes"]) {
    if (probe.value("control", false)) continue;
    const std::pair place(probe["at"].get<std::string>(), probe["reader"].get<std::string>());
    if (std::find(places.begin(), places.end(), place) == places.end()) places.push_back(place);
  }
  for (const auto& [at, reader] : places) {
    FigureSeries bars{"", Style::bars, 0, {}, {}};
    std::vector<std::string> modes;
    for (const auto& probe : table["probes"]) {
      if (probe.value("control", false) || probe["at"] != at || probe["reader"] != reader) continue;
      bars.x.push_back(static_cast<double>(modes.size()));
      bars.y.push_back(probe.contains("delta_loss") && probe["delta_loss"].is_number()
                           ? probe["delta_loss"].get<double>()
                           : std::numeric_limits<double>::quiet_NaN());
      modes.push_back(probe["mode"].get<std::string>());
    }
    FigurePanel panel =
        plot(fmt::format("{}: {}, positions {}", name, reader, at), "", {bars}, 0.7);
    panel.x = index_axis("", static_cast<int>(modes.size()), modes);
    panel.x.is_sideways = true;
    figure.panels.push_back(std::move(panel));
  }
}

}  // namespace

Figure bound_figure(const FigureRequest& request, const std::vector<FigureInput>& inputs) {
  Figure figure;
  const AllEvidence all = evidence_of(request, inputs);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::vector<NormEvidence>& norms = all.reports[i].norms;
    if (norms.empty()) refuse_without_norms(inputs[i], all.reports[i]);
    for (const NormKindName& kind : kNormKinds)
      if (std::any_of(norms.begin(), norms.end(),
                      [&](const auto& e) { return e.role == kind.role; }))
        figure.panels.push_back(
            bound_panel(all.reports[i], kind, panel_title(inputs[i], kind.name)));
  }
  arrange(figure, request, 3);
  share_value_axis(figure, request, {"‖y‖_rms / max|λ|", Scale::linear, true});
  add_note(figure,
           fmt::format("One dot a token and norm; d: {}. Bound (1) of 2601.22966, A.1, with u "
                       "normalized to length 1.",
                       all.outlier));
  return figure;
}

Figure shares_figure(const FigureRequest& request, const std::vector<FigureInput>& inputs) {
  Figure figure;
  const AllEvidence all = evidence_of(request, inputs);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const RescaleReport& report = all.reports[i];
    const FigureInput& input = inputs[i];
    for (const auto& [quantity, needs] : report.not_computed)
      if (quantity.starts_with("share after"))
        add_note(figure, fmt::format("Not computed: {} ({}).", quantity, needs));
    figure.panels.push_back(share_panel(report, panel_title(input, "shares")));
    FigurePanel depth =
        plot(panel_title(input, "rescale factors"), "Layer",
             {over_depth(report, "ln1", "α attention norms, first token", 0, true),
              over_depth(report, "ln1", "… other tokens", 0, false),
              over_depth(report, "ln2", "α FFN norms, first token", 1, true),
              over_depth(report, "ln2", "… other tokens", 1, false), attention_over_depth(report)},
             0.9);
    depth.x = index_axis("Layer", report.n_layers);
    figure.panels.push_back(std::move(depth));
  }
  arrange(figure, request, 2);
  share_value_axis(figure, request, {"Share after, or factor", Scale::linear, true});
  add_note(figure,
           fmt::format("Before: h_d²/‖h‖², d: {}, or the attention p on the key (median over "
                       "queries). After: y_d²/‖y‖², or p‖v‖/Σp‖v‖. α: the factor on every other "
                       "dimension, with the norm's eps.",
                       all.outlier));
  return figure;
}

Figure probes_figure(const FigureRequest& request, const std::vector<FigureInput>& inputs) {
  Figure figure;
  for (const FigureInput& input : inputs) add_probe_panels(figure, input);
  if (figure.panels.empty())
    throw Error(ErrorKind::invalid_argument, "probes: the table holds no probe");
  arrange(figure, request, 2);
  share_value_axis(figure, request, {"Loss minus the model's (nats)", Scale::linear, true});
  add_note(figure,
           "What a norm sees is changed, the stream is not; mean over the next tokens of all "
           "prompts. direct: output zeroed; denominator: out of the root mean square alone.");
  return figure;
}

}  // namespace sinkscope
