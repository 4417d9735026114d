// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "core/compare/comparison.h"
#include "core/number_text.h"
#include "core/site_name.h"

namespace sinkscope {
namespace {

constexpr std::size_t kShown = 16;  // rows of a list before "… N more"

// "blocks.3 (4th of 4), token 5, dim 37"
std::string place_text(const SiteDifference& site, int n_layers) {
  std::vector<std::string> parts;
  if (site.layer >= 0) parts.push_back(layer_label(site.layer, n_layers));
  for (const auto& [axis, index] : site.place) parts.push_back(fmt::format("{} {}", axis, index));
  return fmt::format("{}", fmt::join(parts, ", "));
}

// The worst site of each dataset over all runs.
struct Worst {
  const SiteDifference* site = nullptr;
  const RunComparison* run = nullptr;
  std::string name;
};

// "hook_resid_post" for all blocks' hook_resid_post; the path where it is no hook.
std::string group_name(const SiteDifference& site) {
  if (site.dataset == "residual/stream") return SiteName::parse(site.site).hook;
  if (site.dataset.starts_with("taps/")) return site.dataset.substr(5, site.dataset.rfind('/') - 5);
  return site.dataset;
}

std::vector<Worst> worst_of(const Comparison& comparison) {
  std::vector<Worst> worst;
  std::map<std::string, std::size_t> place;
  for (const RunComparison& run : comparison.runs)
    for (const SiteDifference& site : run.sites) {
      const std::string name = group_name(site);
      const auto [found, is_new] = place.emplace(name, worst.size());
      if (is_new) worst.push_back({&site, &run, name});
      Worst& here = worst[found->second];
      if (site.scaled > here.site->scaled) here = {&site, &run, name};
    }
  std::erase_if(worst, [](const Worst& w) { return w.site->n_unequal == 0; });
  std::stable_sort(worst.begin(), worst.end(),
                   [](const Worst& a, const Worst& b) { return a.site->scaled > b.site->scaled; });
  return worst;
}

// Names of arrays that only one has, without the lists and parts that come with them.
std::string only_text(const std::vector<std::string>& paths) {
  std::vector<std::string> names;
  for (const std::string& path : paths) {
    const bool has_parts = path.starts_with("taps/") || path.starts_with("stats/");
    const std::string name = has_parts ? path.substr(0, path.find('/', path.find('/') + 1)) : path;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string inputs_text(const Comparison& c) {
  std::string text;
  for (const RunComparison& run : c.runs) {
    const std::string which = c.runs.size() > 1 || run.run_a != run.run_b
                                  ? fmt::format("{} and {}: ", run.run_a, run.run_b)
                                  : std::string();
    if (run.same_tokens)
      text += fmt::format("{}the same {} tokens\n", which, run.input_a.seq_len());
    for (const std::string& note : run.notes) text += fmt::format("{}{}\n", which, note);
    if (!run.only_a.empty()) text += fmt::format("{}only in A: {}\n", which, only_text(run.only_a));
    if (!run.only_b.empty()) text += fmt::format("{}only in B: {}\n", which, only_text(run.only_b));
    if (!run.in_part.empty())
      text += fmt::format("{}compared in part: {}\n", which, only_text(run.in_part));
  }
  if (!c.runs_only_a.empty())
    text += fmt::format("runs only in A: {}\n", fmt::join(c.runs_only_a, ", "));
  if (!c.runs_only_b.empty())
    text += fmt::format("runs only in B: {}\n", fmt::join(c.runs_only_b, ", "));
  return text;
}

std::string differences_text(const Comparison& c) {
  std::int64_t n = 0, n_unequal = 0, n_non_finite = 0;
  for (const RunComparison& run : c.runs)
    for (const SiteDifference& site : run.sites) {
      n += site.n_compared;
      n_unequal += site.n_unequal;
      n_non_finite += site.n_non_finite;
    }
  std::string text = fmt::format(
      "\nB − A: {} of {} values differ{}\n", count_text(n_unequal), count_text(n),
      n_non_finite > 0 ? fmt::format(", {} are finite in one only", count_text(n_non_finite)) : "");
  const std::vector<Worst> worst = worst_of(c);
  if (worst.empty()) return text;
  text += "  scaled = |B − A| / max(1, |A|, |B|); the worst place of each array\n";
  for (std::size_t i = 0; i < std::min(kShown, worst.size()); ++i) {
    const SiteDifference& site = *worst[i].site;
    text += fmt::format("  {}  scaled {}  |B − A| {}  {} → {}   {}{}\n",
                        pad_right(worst[i].name, 40), pad_left(readable(site.scaled), 9),
                        pad_left(readable(site.largest), 9), readable(site.value_a),
                        readable(site.value_b), c.runs.size() > 1 ? worst[i].run->run_a + ", " : "",
                        place_text(site, c.model_a.n_layers));
  }
  if (worst.size() > kShown) text += fmt::format("  … {} more\n", worst.size() - kShown);
  return text;
}

std::string members_text(const char* what, const MemberShift& shift) {
  std::string text;
  if (!shift.only_a.empty())
    text += fmt::format("  {} only in A: {}\n", what, readable_list(shift.only_a));
  if (!shift.only_b.empty())
    text += fmt::format("  {} only in B: {}\n", what, readable_list(shift.only_b));
  return text;
}

std::string sinks_text(const Comparison& c, const RunComparison& run) {
  std::string text;
  for (const SinkShift& shift : run.shifts)
    if (readable(shift.a) != readable(shift.b))
      text += fmt::format("  {}  {} → {}\n", pad_right(shift.name, 52), readable(shift.a),
                          readable(shift.b));
  if (run.head && readable(run.head->value_a) != readable(run.head->value_b))
    text += fmt::format("  {}  {} → {}   {}\n",
                        pad_right("the head whose score of key 0 moved most", 52),
                        readable(run.head->value_a), readable(run.head->value_b),
                        place_text(*run.head, c.model_a.n_layers));
  text += members_text("sink tokens", run.sink_tokens);
  text += members_text("residual sink dimensions", run.sink_dims);
  if (run.largest) {
    const auto& [a, b] = *run.largest;
    if (a.token != b.token || a.dim != b.dim || run.largest_site_a != run.largest_site_b)
      text +=
          fmt::format("  the largest |x|: {} at {} token {} dim {} → {} at {} token {} dim {}\n",
                      readable(a.value), run.largest_site_a, a.token, a.dim, readable(b.value),
                      run.largest_site_b, b.token, b.dim);
  }
  if (text.empty()) text = "  no shift that four digits show\n";
  return fmt::format("\nSinks{}\n{}", c.runs.size() > 1 ? " of " + run.run_a : "", text);
}

}  // namespace

std::string comparison_text(const std::vector<Comparison>& comparisons,
                            const std::optional<Verdict>& verdict) {
  std::string text;
  for (const Comparison& c : comparisons) {
    if (!text.empty()) text += '\n';
    text +=
        fmt::format("A  {} · {}\nB  {} · {}\n", c.path_a, c.model_a.name, c.path_b, c.model_b.name);
    text += inputs_text(c) + differences_text(c);
    for (const RunComparison& run : c.runs) text += sinks_text(c, run);
  }
  if (!verdict) return text;
  if (verdict->is_within)
    return text +
           fmt::format("\nwithin {:g}: no value differs by more, scaled\n", verdict->tolerance);
  text += fmt::format("\nnot within {:g}:\n", verdict->tolerance);
  for (std::size_t i = 0; i < std::min(kShown, verdict->reasons.size()); ++i)
    text += fmt::format("  {}\n", verdict->reasons[i]);
  if (verdict->reasons.size() > kShown)
    text += fmt::format("  … {} more\n", verdict->reasons.size() - kShown);
  return text;
}

}  // namespace sinkscope
