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

// The first run in which `found` holds; the runs are not empty.
template <class Found>
const RunReport* first_run_with(const SinkReport& report, Found found) {
  const auto run = std::find_if(report.runs.begin(), report.runs.end(), found);
  return run == report.runs.end() ? nullptr : &*run;
}

std::string attention_sentence(const SinkReport& report) {
  const std::string criterion = fmt::format(" [{}]", sink_token_criterion(report.options));
  const RunReport& first = report.runs.front();
  if (first.attention.layers.empty()) {
    return "No attention sink can be looked for: the capture has no softmax attention." + criterion;
  }
  if (report.all.runs_with_sink_token.empty()) {
    double top = 0;
    for (const RunReport& r : report.runs) top = std::max(top, largest_score(r.attention));
    return fmt::format(
        "No token is an attention sink: key {} gets at most {} of a head's attention.{}",
        report.options.gu_key, readable(top), criterion);
  }
  const auto [position, n_runs] = report.all.runs_with_sink_token.front();
  const auto is_it = [p = position](const SinkToken& t) { return t.token == p; };
  const RunReport* run = first_run_with(report, [&](const RunReport& r) {
    return std::any_of(r.attention.sink_tokens.begin(), r.attention.sink_tokens.end(), is_it);
  });
  const auto& tokens = run->attention.sink_tokens;
  const SinkToken& sink = *std::find_if(tokens.begin(), tokens.end(), is_it);
  const auto cells = run->attention.gu.sink_ratio.cells;
  const std::string example = report.all.n_runs == 1 ? "" : fmt::format(" (in {})", run->name);
  return fmt::format(
      "{} is an attention sink{}: {} of {} heads ({}) give it more than {:g} of their attention{}, "
      "{:.3f} at most in {}, head {}.{}",
      capitalized(named(position, sink.text)), in_runs(n_runs, report.all.n_runs), sink.heads,
      cells, percent(static_cast<double>(sink.heads) / static_cast<double>(cells)),
      report.options.epsilon, example, sink.max_score,
      layer_label(sink.layer, report.model.n_layers), sink.head, criterion);
}

std::string no_massive_sentence(const SinkReport& report) {
  const RunReport& first = report.runs.front();
  const RunReport* run = &first;
  std::size_t site = 0;
  double largest_abs = -1;
  for (const RunReport& r : report.runs) {
    for (std::size_t s = 0; s < r.residual.sites.size(); ++s) {
      const Peak& peak = r.residual.max_abs[s];
      if (peak.token >= 0 && peak.value > largest_abs) {
        largest_abs = peak.value;
        run = &r;
        site = s;
      }
    }
  }
  const std::string criterion =
      fmt::format("[{}]", massive_criterion(report.options, first.residual.massive_mode));
  if (largest_abs < 0) {
    return "No massive activation can be looked for: there are no such positions. " + criterion;
  }
  const Peak& peak = run->residual.max_abs[site];
  return fmt::format(
      "No activation is massive{}: the largest |h| is {} at {} (token {}, dimension {}), {} times "
      "the median there. {}",
      narrowed_to(report.options.at), readable(peak.value), run->residual.sites[site], peak.token,
      peak.dim, readable(peak.value / run->residual.median_abs[site]), criterion);
}

std::string massive_sentence(const SinkReport& report) {
  if (report.all.runs_with_massive_dim.empty()) return no_massive_sentence(report);
  const int dim = report.all.runs_with_massive_dim.front().first;
  const int n_runs = report.all.runs_with_massive_dim.front().second;
  const auto is_it = [&](const MassiveGroup& g) { return g.dim == dim; };
  const RunReport* run = first_run_with(report, [&](const RunReport& r) {
    return std::any_of(r.residual.massive_groups.begin(), r.residual.massive_groups.end(), is_it);
  });
  // With one run the group at most sites leads; otherwise the dimension that most runs share.
  const auto& groups = run->residual.massive_groups;
  const MassiveGroup& g =
      report.all.n_runs == 1 ? groups.front() : *std::find_if(groups.begin(), groups.end(), is_it);
  const std::string text = run->input.token_text.at(static_cast<std::size_t>(g.token));
  const std::string example = report.all.n_runs == 1 ? "" : fmt::format(" in {}", run->name);
  return fmt::format(
      "Dimension {} is massive on {}{}: |h| reaches {} at {}{}, {} times the median there, and is "
      "massive at {} of {} sites, {} to {}. [{}]",
      g.dim, named(g.token, text), in_runs(n_runs, report.all.n_runs), readable(g.peak.value),
      g.peak.site, example, readable(g.peak.ratio), g.n_sites, run->residual.sites.size(),
      g.first_site, g.last_site, massive_criterion(report.options, run->residual.massive_mode));
}

std::string residual_sink_sentence(const SinkReport& report) {
  const ResidualReport& all = report.all.residual;
  const std::string criterion = fmt::format(" [{}]", residual_sink_criterion(report.options));
  if (all.sinks.empty()) {
    double top = 0;
    std::size_t site = 0;
    for (std::size_t s = 0; s < all.m2.size(); ++s) {
      if (all.m2[s] > top) {
        top = all.m2[s];
        site = s;
      }
    }
    if (top == 0)
      return "No residual sink can be looked for: there are no such positions." + criterion;
    return fmt::format(
        "No dimension is a residual sink: the largest, {}, is {} times the median "
        "dimension at {}.{}",
        all.m2_dim[site], readable(top), all.sites[site], criterion);
  }
  std::vector<int> dims;
  for (const ResidualSink& s : all.sinks) dims.push_back(s.dim);
  const ResidualSink& lead = all.sinks.front();
  const bool one = dims.size() == 1;
  return fmt::format(
      "Dimension{} {} {}: {} is {} times the median dimension at {}, above the threshold at {} of "
      "{} "
      "sites, and the largest of its token on {} of the tokens there.{}",
      one ? "" : "s", readable_list(dims, 4), one ? "is a residual sink" : "are residual sinks",
      lead.dim, readable(lead.ratio), lead.site, lead.n_sites, all.sites.size(),
      percent(lead.argmax_hit), criterion);
}

}  // namespace

std::vector<std::string> sink_findings(const SinkReport& report) {
  return {attention_sentence(report), massive_sentence(report), residual_sink_sentence(report)};
}

}  // namespace sinkscope
