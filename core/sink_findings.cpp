// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/number_text.h"
#include "core/sink_conventions.h"
#include "core/sink_report.h"

namespace sinkscope {
namespace {

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

std::string named(int token, const std::string& text) {
  return text.empty() ? fmt::format("token {}", token)
                      : fmt::format("token {} {}", token, quoted(text));
}

std::string in_runs(int runs, int n_runs) {
  return n_runs == 1 ? "" : fmt::format(" in {} of {} runs", runs, n_runs);
}

std::string capitalized(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 32);
  return text;
}

std::string narrowed_to(const PositionFilter& at) {
  return at.kind == PositionFilter::Kind::all ? "" : " among " + describe_positions(at);
}

double largest_score(const AttentionSinks& a) {
  double top = 0;
  for (const HeadSummary& s : a.gu.layers) top = std::fmax(top, s.max);
  return top;
}

// "No massive activation can be looked for: why. [criterion]"
std::string not_looked_for(const char* what, const std::string& why, const std::string& criterion) {
  return fmt::format("No {} can be looked for: {}.{}", what, why, criterion);
}

bool has_no_layer(const SinkReport& report) { return !report.complete && report.layers_done == 0; }

const char* const kNoLayer = "no layer of the capture is whole yet";
const char* const kNoPosition = "there are no such positions";

// Of the first run that has any; "" where all values are finite.
std::string non_finite_in(const SinkReport& report) {
  for (const RunReport& run : report.runs) {
    if (run.residual.non_finite.count == 0) continue;
    const std::string where = report.all.n_runs == 1 ? "" : fmt::format("in {}, ", run.name);
    return where + non_finite_text(run.residual.non_finite);
  }
  return "";
}

// What is not found among finite values may hide in the others.
std::string nothing_found(const SinkReport& report, const char* what, const std::string& nothing) {
  const std::string others = non_finite_in(report);
  return others.empty() ? nothing
                        : fmt::format("No {} is found, and none can be ruled out: {}; of the rest",
                                      what, others);
}

// Where a token is a sink most strongly, and whether it is the same token in all those runs.
struct StrongestSink {
  const RunReport* run = nullptr;
  const SinkToken* sink = nullptr;
  bool same_text = true;
};

StrongestSink strongest_sink(const SinkReport& report, int position) {
  StrongestSink best;
  for (const RunReport& run : report.runs) {
    for (const SinkToken& sink : run.attention.sink_tokens) {
      if (sink.token != position) continue;
      if (best.sink && sink.text != best.sink->text) best.same_text = false;
      if (!best.sink || sink.max_score > best.sink->max_score) {
        best.run = &run;
        best.sink = &sink;
      }
    }
  }
  return best;
}

std::string no_attention_sentence(const SinkReport& report, const std::string& criterion) {
  const char* const what = "attention sink";
  const RunReport* judged = nullptr;
  double top = 0;
  for (const RunReport& run : report.runs) {
    if (!run.attention.can_be_judged()) continue;
    judged = &run;
    top = std::max(top, largest_score(run.attention));
  }
  if (!judged) {
    const std::string others = non_finite_in(report);
    return not_looked_for(what,
                          why_not_judged(report.runs.front().attention, report.options) +
                              (others.empty() ? "" : "; " + others),
                          criterion);
  }
  return fmt::format("{}: key {} gets at most {} of a head's attention.{}",
                     nothing_found(report, what, "No token is an attention sink"),
                     report.options.gu_key, readable(top), criterion);
}

std::string attention_sentence(const SinkReport& report) {
  const std::string criterion = fmt::format(" [{}]", sink_token_criterion(report.options));
  if (has_no_layer(report)) return not_looked_for("attention sink", kNoLayer, criterion);
  if (report.runs.front().attention.layers.empty()) {
    return not_looked_for("attention sink", "the capture has no softmax attention", criterion);
  }
  if (report.all.runs_with_sink_token.empty()) return no_attention_sentence(report, criterion);
  const auto [position, n_runs] = report.all.runs_with_sink_token.front();
  const auto [run, sink, same_text] = strongest_sink(report, position);
  const auto cells = run->attention.gu.sink_ratio.cells;
  const bool one = report.all.n_runs == 1;
  const std::string who =
      same_text ? capitalized(named(position, sink->text))
                : fmt::format("Position {} ({} in {})", position, quoted(sink->text), run->name);
  return fmt::format(
      "{} is an attention sink{}: {} of {} heads ({}) give it more than {:g} of their attention{}, "
      "{:.3f} at most in {}, head {}.{}",
      who, in_runs(n_runs, report.all.n_runs), sink->heads, cells,
      percent(static_cast<double>(sink->heads) / static_cast<double>(cells)),
      report.options.epsilon, one ? "" : fmt::format(" (in {})", run->name), sink->max_score,
      layer_label(sink->layer, report.model.n_layers), sink->head, criterion);
}

std::string no_massive_sentence(const SinkReport& report, const std::string& criterion) {
  const RunReport* run = nullptr;
  std::size_t site = 0;
  for (const RunReport& r : report.runs) {
    for (std::size_t s = 0; s < r.residual.sites.size(); ++s) {
      const Peak& peak = r.residual.max_abs[s];
      if (peak.token < 0 || (run && !(peak.value > run->residual.max_abs[site].value))) continue;
      run = &r;
      site = s;
    }
  }
  if (!run) return not_looked_for("massive activation", kNoPosition, criterion);
  const Peak& peak = run->residual.max_abs[site];
  return fmt::format(
      "{}{}: the largest |h| is {} at {} (token {}, dimension {}), {} times the median there.{}",
      nothing_found(report, "massive activation", "No activation is massive"),
      narrowed_to(report.options.at), readable(peak.value), run->residual.sites[site], peak.token,
      peak.dim, readable(peak.value / run->residual.median_abs[site]), criterion);
}

std::string massive_sentence(const SinkReport& report) {
  const std::string criterion = fmt::format(
      " [{}]", massive_criterion(report.options, report.runs.front().residual.massive_mode));
  if (has_no_layer(report)) return not_looked_for("massive activation", kNoLayer, criterion);
  if (report.all.runs_with_massive_dim.empty()) return no_massive_sentence(report, criterion);
  // With one run the group at most sites leads; otherwise the dimension that most runs share,
  // where it is largest.
  const auto [dim, n_runs] = report.all.runs_with_massive_dim.front();
  const bool one = report.all.n_runs == 1;
  const RunReport* run = &report.runs.front();
  const MassiveGroup* group = one ? &run->residual.massive_groups.front() : nullptr;
  for (const RunReport& r : report.runs) {
    for (const MassiveGroup& g : r.residual.massive_groups) {
      if (one || g.dim != dim || (group && !(g.peak.value > group->peak.value))) continue;
      run = &r;
      group = &g;
    }
  }
  const MassiveGroup& g = *group;
  const std::string token =
      named(g.token, run->input.token_text.at(static_cast<std::size_t>(g.token)));
  const std::string where = one ? "" : fmt::format(" on {} of {}", token, run->name);
  return fmt::format(
      "Dimension {} is massive{}{}: |h| reaches {} at {}{}, {} times the median there, and is "
      "massive at {} of {} sites, {} to {}.{}",
      g.dim, one ? " on " + token : "", in_runs(n_runs, report.all.n_runs), readable(g.peak.value),
      g.peak.site, where, readable(g.peak.ratio), g.n_sites, run->residual.sites.size(),
      g.first_site, g.last_site, criterion);
}

std::string residual_sink_sentence(const SinkReport& report) {
  const ResidualReport& all = report.all.residual;
  const std::string criterion = fmt::format(" [{}]", residual_sink_criterion(report.options));
  if (has_no_layer(report)) return not_looked_for("residual sink", kNoLayer, criterion);
  if (all.sinks.empty()) {
    double top = 0;
    std::size_t site = 0;
    for (std::size_t s = 0; s < all.m2.size(); ++s) {
      if (all.m2[s] > top) {
        top = all.m2[s];
        site = s;
      }
    }
    if (top == 0) {
      const std::string others = non_finite_in(report);
      return not_looked_for("residual sink", others.empty() ? kNoPosition : others, criterion);
    }
    return fmt::format("{}: the largest, {}, is {} times the median dimension at {}.{}",
                       nothing_found(report, "residual sink", "No dimension is a residual sink"),
                       all.m2_dim[site], readable(top), all.sites[site], criterion);
  }
  std::vector<int> dims;
  for (const ResidualSink& s : all.sinks) dims.push_back(s.dim);
  const ResidualSink& lead = all.sinks.front();
  const bool one = dims.size() == 1;
  return fmt::format(
      "Dimension{} {} {}: {} is {} times the median dimension at {}, above the threshold at {} of "
      "{} sites, and the largest of its token on {} of the tokens there.{}",
      one ? "" : "s", readable_list(dims, 4), one ? "is a residual sink" : "are residual sinks",
      lead.dim, readable(lead.ratio), lead.site, lead.n_sites, all.sites.size(),
      percent(lead.argmax_hit), criterion);
}

}  // namespace

std::vector<std::string> sink_findings(const SinkReport& report) {
  return {attention_sentence(report), massive_sentence(report), residual_sink_sentence(report)};
}

}  // namespace sinkscope
