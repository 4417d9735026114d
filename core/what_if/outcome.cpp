// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/what_if/outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/mean_loss.h"
#include "core/what_if/baseline.h"

namespace sinkscope {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

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

RunOutcome run_outcome(const CaptureReader& before, const CaptureReader& after,
                       const std::string& run, const std::string& twin) {
  RunOutcome outcome;
  outcome.number = std::stoi(run.substr(3));  // "run3"
  outcome.loss = {mean_loss(before, {run}), mean_loss(after, {twin})};
  if (after.has(twin, "compare/kl")) {
    outcome.kl = after.read_f64(twin, "compare/kl");
    if (!outcome.kl.empty()) outcome.kl.pop_back();  // the last position has no next token
  }
  return outcome;
}

// Each position of each run counts once.
void pool_kl(WhatIfOutcome& outcome) {
  double sum = 0, n = 0;
  for (const RunOutcome& run : outcome.runs)
    for (std::size_t t = 0; t < run.kl.size(); ++t) {
      sum += run.kl[t];
      ++n;
      if (!(run.kl[t] > outcome.kl_max)) continue;
      outcome.kl_max = run.kl[t];
      outcome.kl_max_run = run.number;
      outcome.kl_max_token = static_cast<int>(t);
    }
  outcome.kl_mean = n > 0 ? sum / n : kNaN;
}

// Of models without a head. Absent where a run has no final norm in its file.
std::optional<StateChange> state_change(const CaptureReader& before, const CaptureReader& after,
                                        const Compared<std::vector<std::string>>& names) {
  StateChange change;
  double sum = 0, n = 0;
  for (std::size_t r = 0; r < names.baseline.size(); ++r) {
    const std::string path = "residual/final_norm";
    if (!before.has(names.baseline[r], path) || !after.has(names.edited[r], path)) return {};
    const std::vector<float> x = before.read_f32(names.baseline[r], path),
                             y = after.read_f32(names.edited[r], path);
    const int seq_len = before.input(names.baseline[r]).seq_len();
    const std::size_t width = x.size() / static_cast<std::size_t>(seq_len);
    for (int t = 0; t < seq_len; ++t) {
      double difference = 0, size = 0;
      for (std::size_t i = t * width; i < (t + 1) * width; ++i) {
        difference += std::pow(static_cast<double>(y[i]) - x[i], 2);
        size += std::pow(static_cast<double>(x[i]), 2);
      }
      const double ratio = std::sqrt(difference / size);
      sum += ratio;
      ++n;
      if (!(ratio > change.largest)) continue;
      change.largest = ratio;
      change.largest_run = std::stoi(names.baseline[r].substr(3));
      change.largest_token = t;
    }
  }
  change.mean = sum / n;
  return change;
}

double largest_finite(const std::vector<double>& values) {
  double most = kNaN;
  for (double v : values)
    if (!(v <= most) && std::isfinite(v)) most = v;
  return most;
}

// Quantities of both sides by name, in the first one's order.
std::vector<ComparedQuantity> compared(const std::vector<Quantity>& before,
                                       const std::vector<Quantity>& after) {
  std::vector<ComparedQuantity> both;
  const auto named = [&](const std::string& name) {
    return std::find_if(both.begin(), both.end(),
                        [&](const auto& q) { return q.shape.name == name; });
  };
  const auto add = [&](const Quantity& q,
                       std::vector<double> Compared<std::vector<double>>::*side) {
    auto known = named(q.name);
    if (known == both.end()) {
      ComparedQuantity fresh{q, {}};
      fresh.shape.values.clear();
      fresh.values.baseline.assign(q.values.size(), kNaN);
      fresh.values.edited = fresh.values.baseline;
      known = both.insert(both.end(), std::move(fresh));
    }
    if ((known->values.*side).size() == q.values.size()) known->values.*side = q.values;
  };
  for (const Quantity& q : before) add(q, &Compared<std::vector<double>>::baseline);
  for (const Quantity& q : after) add(q, &Compared<std::vector<double>>::edited);
  return both;
}

// Means over runs, cell by cell.
std::vector<Quantity> means_of(const SinkReport& report) {
  std::vector<Quantity> means;
  for (const SpreadTable& table : report.all.spreads) {
    Quantity mean = table.shape;
    for (const Spread& spread : table.cells) mean.values.push_back(spread.mean);
    means.push_back(std::move(mean));
  }
  return means;
}

// The largest cell of each run, then the mean over the runs that have one.
Compared<double> mean_largest(const std::vector<RunOutcome>& runs, const std::string& name) {
  Compared<double> sum, n;
  const auto add = [](double largest, double& to, double& count) {
    if (std::isnan(largest)) return;
    to += largest;
    ++count;
  };
  for (const RunOutcome& run : runs)
    for (const ComparedQuantity& q : run.quantities) {
      if (q.shape.name != name) continue;
      add(largest_finite(q.values.baseline), sum.baseline, n.baseline);
      add(largest_finite(q.values.edited), sum.edited, n.edited);
    }
  return {n.baseline > 0 ? sum.baseline / n.baseline : kNaN,
          n.edited > 0 ? sum.edited / n.edited : kNaN};
}

void compare_metrics(const SinkReport& before, const SinkReport& after, WhatIfOutcome& outcome) {
  for (std::size_t r = 0; r < outcome.runs.size(); ++r)
    if (r < before.runs.size() && r < after.runs.size())
      outcome.runs[r].quantities = compared(quantities(before.runs[r]), quantities(after.runs[r]));
  outcome.tables = compared(means_of(before), means_of(after));
  for (const ComparedQuantity& q : outcome.tables) {
    if (q.shape.axis == Quantity::Axis::layer_head || q.values.baseline.empty()) continue;
    const std::string& name = q.shape.name;
    if (q.shape.axis == Quantity::Axis::none)
      outcome.metrics.emplace_back(
          name, Compared<double>{q.values.baseline.front(), q.values.edited.front()});
    else
      outcome.metrics.emplace_back(name + ".largest", mean_largest(outcome.runs, name));
  }
  const RunReport& first = before.runs.front();
  outcome.attention_layers = first.attention.layers;
  outcome.sites = first.residual.sites;
  outcome.tensors = first.residual.outlier_tensors.names;
  outcome.outliers = {outliers_of(before), outliers_of(after)};
}

}  // namespace

std::vector<Touched> touched_by(const WhatIf& what_if,
                                const std::vector<std::vector<int>>& token_ids,
                                const std::vector<int>& attention_layers, int n_layers) {
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
    if (touched.heads && static_cast<int>(attention_layers.size()) < n_layers) {
      std::vector<int> layers = attention_layers;
      std::erase_if(layers, [&](int layer) { return !touched.layers->contains(layer); });
      touched.layers = IndexSet(std::move(layers));
      touched.skips_linear = true;
    }
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
  for (std::size_t r = 0; r < names.baseline.size(); ++r) {
    const RunInput input = before_reader.input(names.baseline[r]);
    outcome.n_tokens += input.seq_len();
    token_ids.push_back(input.token_ids);
    if (!input.bos_positions.empty() && input.bos_positions.front() == 0) ++outcome.n_with_bos;
    outcome.runs.push_back(run_outcome(before_reader, reader, names.baseline[r], names.edited[r]));
    outcome.runs.back().n_tokens = input.seq_len();
  }
  outcome.loss = {mean_loss(before_reader, names.baseline), mean_loss(reader, names.edited)};
  pool_kl(outcome);
  const SinkReport before =
      baseline != nullptr ? *baseline : sink_report(before_reader, names.baseline, options);
  compare_metrics(before, sink_report(reader, names.edited, options), outcome);
  outcome.touched = touched_by(outcome.what_if, token_ids, outcome.attention_layers,
                               reader.model(names.edited.front()).n_layers);
  outcome.has_head = reader.has(names.edited.front(), "logits/top_ids");
  if (!outcome.has_head) outcome.state_change = state_change(before_reader, reader, names);
  return outcome;
}

}  // namespace sinkscope
