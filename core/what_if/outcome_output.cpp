// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/json_numbers.h"
#include "core/what_if/outcome.h"

namespace sinkscope {
namespace {

std::string bos_text(const WhatIfOutcome& outcome) {
  if (outcome.n_with_bos == 0) return "without BOS";
  return outcome.n_with_bos == outcome.n_runs
             ? "each with BOS"
             : fmt::format("{} of them with BOS", outcome.n_with_bos);
}

nlohmann::ordered_json set_json(const IndexSet& set) {
  return set.is_all() ? nlohmann::ordered_json("all") : nlohmann::ordered_json(set.members());
}

nlohmann::ordered_json touched_json(const Touched& touched) {
  nlohmann::ordered_json json = {{"edit", touched.edit}};
  if (!touched.tokens.empty()) json["tokens"] = touched.tokens;
  if (touched.dims) json["dims"] = set_json(*touched.dims);
  if (touched.layers) json["layers"] = set_json(*touched.layers);
  if (touched.heads) json["heads"] = set_json(*touched.heads);
  if (touched.keys) json["keys"] = set_json(*touched.keys);
  if (!touched.places.empty()) json["places"] = touched.places;
  return json;
}

// "residual.set: 1 token (0), dims 507, layers all".
std::string touched_text(const Touched& touched) {
  std::vector<std::string> parts;
  if (!touched.tokens.empty()) {
    std::size_t n = 0;
    for (const auto& of_run : touched.tokens) n += of_run.size();
    const IndexSet first(touched.tokens.front());
    const std::string where = first.text();
    parts.push_back(fmt::format("{} token{} ({}{})", n, n == 1 ? "" : "s",
                                where.substr(0, 40) + (where.size() > 40 ? "…" : ""),
                                touched.tokens.size() > 1 ? " of the first run" : ""));
  }
  const auto add = [&](const char* what, const std::optional<IndexSet>& set) {
    if (set) parts.push_back(fmt::format("{} {}", what, set->text()));
  };
  add("dims", touched.dims);
  add("layers", touched.layers);
  if (touched.skips_linear) parts.back() += " (the others have no softmax attention)";
  add("heads", touched.heads);
  add("keys", touched.keys);
  if (!touched.places.empty()) parts.push_back(fmt::format("{}", fmt::join(touched.places, " ")));
  return fmt::format("{}: {}", touched.edit, fmt::join(parts, ", "));
}

nlohmann::ordered_json both(const Compared<double>& values, JsonNumbers& numbers) {
  return {{"baseline", numbers.number(values.baseline)}, {"edited", numbers.number(values.edited)}};
}

const char* name_of(Quantity::Axis axis) {
  switch (axis) {
    case Quantity::Axis::layer:
      return "layer";
    case Quantity::Axis::layer_head:
      return "layer_head";
    case Quantity::Axis::site:
      return "site";
    case Quantity::Axis::tensor:
      return "tensor";
    case Quantity::Axis::none:
      break;
  }
  return "none";
}

nlohmann::ordered_json cells_json(const Quantity& shape, const std::vector<double>& values,
                                  JsonNumbers& numbers) {
  if (shape.axis != Quantity::Axis::layer_head) return numbers.list(values);
  return numbers.matrix(Eigen::Map<const MatrixD>(values.data(), shape.rows, shape.cols));
}

// Everything that is more than one number: per layer, per head, per site, per tensor.
nlohmann::ordered_json tables_json(const WhatIfOutcome& o, JsonNumbers& numbers) {
  nlohmann::ordered_json tables = {{"layers", o.attention_layers},
                                   {"sites", o.sites},
                                   {"tensors", o.tensors},
                                   {"quantities", nlohmann::ordered_json::object()}};
  for (const ComparedQuantity& q : o.tables)
    if (q.shape.axis != Quantity::Axis::none)
      tables["quantities"][q.shape.name] = {
          {"axis", name_of(q.shape.axis)},
          {"baseline", cells_json(q.shape, q.values.baseline, numbers)},
          {"edited", cells_json(q.shape, q.values.edited, numbers)}};
  return tables;
}

nlohmann::ordered_json run_json(const RunOutcome& run, JsonNumbers& numbers) {
  double sum = 0;
  for (double kl : run.kl) sum += kl;
  const auto most = std::max_element(run.kl.begin(), run.kl.end());
  nlohmann::ordered_json kl;  // null without a head
  if (!run.kl.empty())
    kl = {{"mean", numbers.number(sum / static_cast<double>(run.kl.size()))},
          {"max", numbers.number(*most)},
          {"max_token", most - run.kl.begin()}};
  return {
      {"run", run.number}, {"tokens", run.n_tokens}, {"loss", both(run.loss, numbers)}, {"kl", kl}};
}

using OutlierText = std::string (*)(const Outliers&, bool);
std::string of_all_runs(const Outliers& outliers, bool /*names_run*/) {
  return residual_sinks_text(outliers);
}

std::string outliers_text(const WhatIfOutcome& o) {
  const bool names_run = o.n_runs > 1;
  std::string text = fmt::format(
      "\nwhere the outliers are{}\n",
      names_run
          ? fmt::format(" (of all {} runs; residual sinks over their positions together)", o.n_runs)
          : "");
  const std::pair<const char*, OutlierText> lines[] = {{"largest |x|", largest_text},
                                                       {"massive", massive_text},
                                                       {"residual sinks", of_all_runs},
                                                       {"attention sinks", sink_text}};
  for (const auto& [what, say] : lines)
    text += fmt::format("  {}\n    baseline  {}\n    edited    {}\n", what,
                        say(o.outliers.baseline, names_run), say(o.outliers.edited, names_run));
  return text;
}

std::string loss_text(const WhatIfOutcome& o) {
  return fmt::format(
      "\n  {:<12} {:>12} {:>12} {:>12}\n  {:<12} {:>12.4f} {:>12.4f} {:>+12.4f}   nats a token, "
      "positions 1 to T-1\n  {:<12} {:>12.4g} {:>12.4g} {:>12}\n"
      "  {:<12} {:>12} {:>12.4g} {:>12}   mean over positions 0 to T-2, nats; largest {:.4g} at "
      "token {} of run {}\n",
      "", "baseline", "edited", "difference", "loss", o.loss.baseline, o.loss.edited,
      o.loss.edited - o.loss.baseline, "perplexity", std::exp(o.loss.baseline),
      std::exp(o.loss.edited), "", "KL", "", o.kl_mean, "", o.kl_max, o.kl_max_token, o.kl_max_run);
}

std::string headless_text(const WhatIfOutcome& o) {
  std::string text = "\n  this model has no head: no loss and no KL\n";
  if (o.state_change)
    text += fmt::format(
        "  final norm: |edited - baseline| / |baseline| {:.4g}, mean over positions; largest "
        "{:.4g} "
        "at token {} of run {}\n",
        o.state_change->mean, o.state_change->largest, o.state_change->largest_token,
        o.state_change->largest_run);
  return text;
}

nlohmann::ordered_json kl_json(const WhatIfOutcome& o, JsonNumbers& numbers) {
  if (!o.has_head) return nullptr;
  return {{"mean", numbers.number(o.kl_mean)},
          {"max", numbers.number(o.kl_max)},
          {"max_run", o.kl_max_run},
          {"max_token", o.kl_max_token}};
}

nlohmann::ordered_json state_change_json(const WhatIfOutcome& o, JsonNumbers& numbers) {
  if (!o.state_change) return nullptr;
  return {{"mean", numbers.number(o.state_change->mean)},
          {"max", numbers.number(o.state_change->largest)},
          {"max_run", o.state_change->largest_run},
          {"max_token", o.state_change->largest_token}};
}

}  // namespace

nlohmann::ordered_json outcome_json(const WhatIfOutcome& o) {
  JsonNumbers numbers;
  const Compared<double> perplexity{std::exp(o.loss.baseline), std::exp(o.loss.edited)};
  nlohmann::ordered_json json = {
      {"schema", "sinkscope.whatif/1"},
      {"conventions",
       {{"loss",
         "mean negative log-likelihood of the next token in nats over positions 1 to T-1 of all "
         "runs; each run is one window: nothing before it is seen (of a prompt cut by --window N, "
         "windows of N tokens side by side, stride N)"},
        {"perplexity", "exp of that mean"},
        {"kl",
         "KL(baseline || edited) of the next token's distribution in nats over positions 0 to "
         "T-2"},
        {"final_norm_change",
         "of models without a head: |edited - baseline| / |baseline| of the final norm's output, "
         "position by position"},
        {"bos", bos_text(o)},
        {"dyt",
         "alpha of gamma tanh(alpha x) fitted by least squares to the norm's own inputs and "
         "outputs "
         "(Newton), gamma = the gain, beta = 0"},
        {"metrics",
         "means over the runs that have a value, each run counting once; .largest: the largest "
         "over sites, layers or tensors of a run"},
        {"tables", "the same means, cell by cell; layer_head: one list a layer"},
        {"max_abs", "per site the largest |x| of any run"},
        {"outliers",
         "of every run by its number; residual_sinks over the positions of all runs together"}}},
      {"model", o.model},
      {"runs", o.n_runs},
      {"tokens", o.n_tokens},
      {"edits", nlohmann::ordered_json::array()},
      {"loss", both(o.loss, numbers)},
      {"perplexity", both(perplexity, numbers)},
      {"kl", kl_json(o, numbers)},
      {"not_retrained", true},
      {"metrics", nlohmann::ordered_json::object()}};
  for (const auto& [side, outliers] :
       {std::pair{"baseline", &o.outliers.baseline}, {"edited", &o.outliers.edited}}) {
    nlohmann::ordered_json where = outliers_json(*outliers, numbers);
    json["max_abs"][side] = where["max_abs"];
    where.erase("max_abs");
    json["outliers"][side] = std::move(where);
  }
  if (!o.has_head) json["final_norm_change"] = state_change_json(o, numbers);
  json["tables"] = tables_json(o, numbers);
  json["by_run"] = nlohmann::ordered_json::array();
  for (const RunOutcome& run : o.runs) json["by_run"].push_back(run_json(run, numbers));
  for (const Edit& edit : o.what_if) json["edits"].push_back(edit_json(edit));
  json["touched"] = nlohmann::ordered_json::array();
  for (const Touched& touched : o.touched) json["touched"].push_back(touched_json(touched));
  if (!o.baseline_file.empty()) json["baseline_file"] = o.baseline_file;
  for (const auto& [name, values] : o.metrics) json["metrics"][name] = both(values, numbers);
  json["non_finite_values"] = numbers.n_non_finite();
  return json;
}

std::string outcome_text(const WhatIfOutcome& o) {
  std::string text = fmt::format(
      "{}, {} run{} of {} tokens together, {}, each one window; the model is not retrained\n",
      o.model, o.n_runs, o.n_runs == 1 ? "" : "s", o.n_tokens, bos_text(o));
  if (!o.baseline_file.empty()) text += fmt::format("baseline: {}\n", o.baseline_file);
  for (const Edit& edit : o.what_if) text += fmt::format("  {}\n", edit_json(edit).dump());
  for (const Touched& touched : o.touched)
    text += fmt::format("touched by {}\n", touched_text(touched));
  text += o.has_head ? loss_text(o) : headless_text(o);
  text += outliers_text(o);
  text +=
      fmt::format("\n  {:<58} {:>12} {:>12}\n", "metric (mean over runs)", "baseline", "edited");
  for (const auto& [name, values] : o.metrics)
    text += fmt::format("  {:<58} {:>12.5g} {:>12.5g}\n", name, values.baseline, values.edited);
  return text + "\nper layer, head and site: --json, --csv\n";
}

}  // namespace sinkscope
