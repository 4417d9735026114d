// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/what_if/outcome.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/mean_loss.h"
#include "core/what_if/baseline.h"

namespace sinkscope {
namespace {

// Runs of the capture with a twin of this number, and the twins.
Compared<std::vector<std::string>> twins(const CaptureReader& reader, int edit) {
  Compared<std::vector<std::string>> names;
  std::vector<std::string> runs;  // twins of a baseline elsewhere stand for their runs
  for (const std::string& run : reader.runs())
    if (runs.empty() || runs.back() != baseline_run(run)) runs.push_back(baseline_run(run));
  for (const std::string& run : runs) {
    const std::vector<std::string> edits = reader.edits(run);
    if (edit >= static_cast<int>(edits.size())) continue;
    names.baseline.push_back(run);
    names.edited.push_back(edits[static_cast<std::size_t>(edit)]);
  }
  if (names.baseline.empty())
    throw Error(
        ErrorKind::not_found,
        fmt::format("{}: no run has an edited twin; sinkscope whatif records one", reader.path()));
  return names;
}

void read_kl(const CaptureReader& reader, const Compared<std::vector<std::string>>& names,
             WhatIfOutcome& outcome) {
  const std::vector<std::string>& runs = names.edited;
  double sum = 0, n = 0;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    if (!reader.has(runs[r], "compare/kl")) continue;
    const std::vector<double> kl = reader.read_f64(runs[r], "compare/kl");
    for (std::size_t t = 0; t + 1 < kl.size(); ++t) {
      sum += kl[t];
      ++n;
      if (!(kl[t] > outcome.kl_max)) continue;
      outcome.kl_max = kl[t];
      outcome.kl_max_run = std::stoi(names.baseline[r].substr(3));  // "run3"
      outcome.kl_max_token = static_cast<int>(t);
    }
  }
  outcome.kl_mean = n > 0 ? sum / n : std::numeric_limits<double>::quiet_NaN();
}

// Scalars of each run, and the largest of what is one number a site or tensor; averaged over runs.
std::vector<std::pair<std::string, double>> scalars(const SinkReport& report) {
  std::vector<std::pair<std::string, double>> all;
  for (const RunReport& run : report.runs)
    for (const Quantity& q : quantities(run)) {
      if (q.values.empty() || q.axis == Quantity::Axis::layer_head) continue;
      double value = std::numeric_limits<double>::quiet_NaN();
      for (double v : q.values)
        if (!(v <= value) && std::isfinite(v)) value = v;
      const std::string name = q.axis == Quantity::Axis::none ? q.name : q.name + ".largest";
      const auto known =
          std::find_if(all.begin(), all.end(), [&](const auto& p) { return p.first == name; });
      const double share = value / static_cast<double>(report.runs.size());
      if (known == all.end())
        all.emplace_back(name, share);
      else
        known->second += share;
    }
  return all;
}

}  // namespace

std::vector<Touched> touched_by(const WhatIf& what_if,
                                const std::vector<std::vector<int>>& token_ids) {
  std::vector<Touched> all;
  for (const Edit& edit : what_if) {
    Touched touched;
    touched.edit = name_of(edit);
    std::visit(
        [&](const auto& e) {
          if constexpr (requires { e.tokens; })
            for (const auto& ids : token_ids) touched.tokens.push_back(e.tokens.of(ids));
          if constexpr (requires { e.dims; })
            if (is_of_dims(e)) touched.dims = e.dims;
          if constexpr (std::is_same_v<std::decay_t<decltype(e)>, ResidualClip>)
            touched.dims = IndexSet();
          if constexpr (requires { e.layers; }) touched.layers = e.layers;
          if constexpr (requires { e.heads; }) touched.heads = e.heads;
          if constexpr (requires { e.keys; }) touched.keys = e.keys;
          if constexpr (requires { e.sites; }) touched.places = e.sites;
          if constexpr (requires { e.norms; }) touched.places = e.norms;
        },
        edit);
    all.push_back(std::move(touched));
  }
  return all;
}

WhatIfOutcome what_if_outcome(const CaptureReader& reader, int edit, const SinkOptions& options,
                              const SinkReport* baseline) {
  const auto names = twins(reader, edit);
  const std::unique_ptr<CaptureReader> elsewhere = open_baseline(reader);
  const CaptureReader& before_reader = elsewhere ? *elsewhere : reader;
  WhatIfOutcome outcome;
  outcome.model = reader.model(names.edited.front()).name;
  if (elsewhere) outcome.baseline_file = elsewhere->path();
  outcome.n_runs = static_cast<int>(names.baseline.size());
  outcome.what_if = parse_what_if(reader.input(names.edited.front()).what_if);
  std::vector<std::vector<int>> token_ids;
  for (const std::string& run : names.baseline) {
    const RunInput input = before_reader.input(run);
    outcome.n_tokens += input.seq_len();
    token_ids.push_back(input.token_ids);
    if (!input.bos_positions.empty() && input.bos_positions.front() == 0) ++outcome.n_with_bos;
  }
  outcome.touched = touched_by(outcome.what_if, token_ids);
  outcome.loss = {mean_loss(before_reader, names.baseline), mean_loss(reader, names.edited)};
  read_kl(reader, names, outcome);
  const SinkReport before =
      baseline != nullptr ? *baseline : sink_report(before_reader, names.baseline, options);
  const SinkReport after = sink_report(reader, names.edited, options);
  const auto old_values = scalars(before), new_values = scalars(after);
  for (std::size_t i = 0; i < old_values.size() && i < new_values.size(); ++i)
    if (old_values[i].first == new_values[i].first)
      outcome.metrics.emplace_back(old_values[i].first,
                                   Compared<double>{old_values[i].second, new_values[i].second});
  outcome.sites = before.runs.front().residual.sites;
  outcome.peaks = {before.runs.front().residual.max_abs, after.runs.front().residual.max_abs};
  return outcome;
}

}  // namespace sinkscope
