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

// The site where the stream is largest.
std::size_t largest(const std::vector<Peak>& peaks) {
  const auto smaller = [](const Peak& a, const Peak& b) { return a.value < b.value; };
  return static_cast<std::size_t>(std::max_element(peaks.begin(), peaks.end(), smaller) -
                                  peaks.begin());
}

std::string bos_text(const WhatIfOutcome& outcome) {
  if (outcome.n_with_bos == 0) return "without BOS";
  return outcome.n_with_bos == outcome.n_runs
             ? "each with BOS"
             : fmt::format("{} of them with BOS", outcome.n_with_bos);
}

std::string peak_text(const WhatIfOutcome& outcome, const std::vector<Peak>& peaks) {
  if (peaks.empty()) return "not recorded";
  const std::size_t i = largest(peaks);
  return fmt::format("{:.6g} at {}, token {}, dimension {}", peaks[i].value, outcome.sites[i],
                     peaks[i].token, peaks[i].dim);
}

nlohmann::ordered_json peaks_json(const WhatIfOutcome& outcome, const std::vector<Peak>& peaks,
                                  JsonNumbers& numbers) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < peaks.size(); ++i)
    list.push_back({{"site", outcome.sites[i]},
                    {"value", numbers.number(peaks[i].value)},
                    {"token", peaks[i].token},
                    {"dim", peaks[i].dim}});
  return list;
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
  add("heads", touched.heads);
  add("keys", touched.keys);
  if (!touched.places.empty()) parts.push_back(fmt::format("{}", fmt::join(touched.places, " ")));
  return fmt::format("{}: {}", touched.edit, fmt::join(parts, ", "));
}

nlohmann::ordered_json both(const Compared<double>& values, JsonNumbers& numbers) {
  return {{"baseline", numbers.number(values.baseline)}, {"edited", numbers.number(values.edited)}};
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
         "runs; each prompt is one window"},
        {"perplexity", "exp of that mean"},
        {"kl",
         "KL(baseline || edited) of the next token's distribution in nats over positions 0 to "
         "T-2"},
        {"bos", bos_text(o)},
        {"dyt",
         "alpha of gamma tanh(alpha x) fitted by least squares to the norm's own inputs and "
         "outputs "
         "(Newton), gamma = the gain, beta = 0"},
        {"metrics",
         "means over the runs; .largest: the largest over sites, layers or tensors of a run"}}},
      {"model", o.model},
      {"runs", o.n_runs},
      {"tokens", o.n_tokens},
      {"edits", nlohmann::ordered_json::array()},
      {"loss", both(o.loss, numbers)},
      {"perplexity", both(perplexity, numbers)},
      {"kl",
       {{"mean", numbers.number(o.kl_mean)},
        {"max", numbers.number(o.kl_max)},
        {"max_run", o.kl_max_run},
        {"max_token", o.kl_max_token}}},
      {"not_retrained", true},
      {"metrics", nlohmann::ordered_json::object()},
      {"max_abs",
       {{"baseline", peaks_json(o, o.peaks.baseline, numbers)},
        {"edited", peaks_json(o, o.peaks.edited, numbers)}}}};
  for (const Edit& edit : o.what_if) json["edits"].push_back(edit_json(edit));
  json["touched"] = nlohmann::ordered_json::array();
  for (const Touched& touched : o.touched) json["touched"].push_back(touched_json(touched));
  if (!o.baseline_file.empty()) json["baseline_file"] = o.baseline_file;
  for (const auto& [name, values] : o.metrics) json["metrics"][name] = both(values, numbers);
  json["non_finite_values"] = numbers.n_non_finite();
  return json;
}

std::string outcome_text(const WhatIfOutcome& o) {
  std::string text =
      fmt::format("{}, {} run{} of {} tokens together, {}; the model is not retrained\n", o.model,
                  o.n_runs, o.n_runs == 1 ? "" : "s", o.n_tokens, bos_text(o));
  if (!o.baseline_file.empty()) text += fmt::format("baseline: {}\n", o.baseline_file);
  for (const Edit& edit : o.what_if) text += fmt::format("  {}\n", edit_json(edit).dump());
  for (const Touched& touched : o.touched)
    text += fmt::format("touched by {}\n", touched_text(touched));
  text += fmt::format(
      "\n  {:<12} {:>12} {:>12} {:>12}\n  {:<12} {:>12.4f} {:>12.4f} {:>+12.4f}   nats a token, "
      "positions 1 to T-1\n  {:<12} {:>12.4g} {:>12.4g} {:>12}\n"
      "  {:<12} {:>12} {:>12.4g} {:>12}   mean over positions 0 to T-2, nats; largest {:.4g} at "
      "token {} of run {}\n",
      "", "baseline", "edited", "difference", "loss", o.loss.baseline, o.loss.edited,
      o.loss.edited - o.loss.baseline, "perplexity", std::exp(o.loss.baseline),
      std::exp(o.loss.edited), "", "KL", "", o.kl_mean, "", o.kl_max, o.kl_max_token, o.kl_max_run);
  text += fmt::format("\nlargest |x| of the stream (first run)\n  baseline  {}\n  edited    {}\n",
                      peak_text(o, o.peaks.baseline), peak_text(o, o.peaks.edited));
  text +=
      fmt::format("\n  {:<58} {:>12} {:>12}\n", "metric (mean over runs)", "baseline", "edited");
  for (const auto& [name, values] : o.metrics)
    text += fmt::format("  {:<58} {:>12.5g} {:>12.5g}\n", name, values.baseline, values.edited);
  return text;
}

}  // namespace sinkscope
