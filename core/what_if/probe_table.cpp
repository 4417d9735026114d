// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/what_if/probe_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace sinkscope {
namespace {

constexpr double kMeasurable = 0.02;  // nats
constexpr double kFree = 0.05;        // of what it is compared with: costs nothing

// Costs of one reader at one position filter, by mode; the control apart.
struct Costs {
  ProbeReader reader;
  PositionFilter at;
  std::map<ProbeMode, double> of;
  double control = 0;
  bool mean_is_value = false;  // setting the input to its mean changed nothing at all
  double cost(ProbeMode mode) const {
    const auto found = of.find(mode);
    return found == of.end() ? 0 : found->second;
  }
};

std::vector<Costs> costs_of(const ProbeTable& table) {
  std::vector<Costs> all;
  std::map<std::string, double> controls;
  for (const ProbeRow& row : table.rows) {
    if (row.is_control) {
      controls[row.reader.name] = row.delta_loss;
      continue;
    }
    const auto same = [&](const Costs& c) {
      return c.reader.name == row.reader.name && c.at == row.at;
    };
    auto place = std::find_if(all.begin(), all.end(), same);
    if (place == all.end()) {
      all.push_back({row.reader, row.at, {}, 0, false});
      place = all.end() - 1;
    }
    place->of[row.mode] = row.delta_loss;
    if (row.mode == ProbeMode::mean) place->mean_is_value = row.delta_loss == 0 && row.kl == 0;
  }
  for (Costs& costs : all) costs.control = controls[costs.reader.name];
  return all;
}

std::string mean_text(const Costs& c) {
  if (!c.of.contains(ProbeMode::mean)) return {};
  if (c.mean_is_value) return ", its mean is its value at all of these positions";
  const double mean = c.cost(ProbeMode::mean);
  return fmt::format(", its mean instead {:+.3f}{}", mean,
                     mean < std::max(kMeasurable, kFree * c.cost(ProbeMode::zero))
                         ? ""
                         : ": its single values matter as well");
}

ProbeVerdict verdict_of(const Costs& c) {
  const double zero = c.cost(ProbeMode::zero), direct = c.cost(ProbeMode::direct),
               denominator = c.cost(ProbeMode::denominator);
  const double part = std::max(direct, denominator);
  ProbeVerdict v{c.reader, c.at, "none", ""};
  for (const ProbeMode mode : {ProbeMode::zero, ProbeMode::direct, ProbeMode::denominator})
    if (!c.of.contains(mode)) {
      v.role = "not judged";
      v.sentence = fmt::format("{}: not judged, {} was not measured", c.reader.name, name_of(mode));
      return v;
    }
  const double kept = c.mean_is_value ? 0 : c.cost(ProbeMode::direct_const);
  if (!std::isfinite(zero + direct + denominator + c.control + kept)) {
    v.role = "not judged";
    v.sentence = fmt::format("{}: not judged, a loss is not a number", c.reader.name);
    return v;
  }
  if (std::max(part, zero) < kMeasurable) {
    v.sentence = fmt::format(
        "{}: no measurable role (zero {:+.3f}, denominator alone {:+.3f}, "
        "output alone {:+.3f}: none costs {} nats)",
        c.reader.name, zero, denominator, direct, kMeasurable);
    return v;
  }
  const bool rescales = part >= kMeasurable && denominator >= part / 2,
             writes = part >= kMeasurable && direct >= part / 2;
  const bool is_constant = std::max(c.control, kept) < std::max(kMeasurable, kFree * direct);
  const std::string written = is_constant ? "constant bias channel" : "flag";
  v.role = rescales && writes ? "rescaler and " + written
           : rescales         ? "rescaler"
           : writes           ? written
                              : "both parts only together";
  v.sentence =
      fmt::format("{}: {} (zero {:+.3f}, denominator alone {:+.3f}, output alone {:+.3f} nats{})",
                  c.reader.name, v.role, zero, denominator, direct, mean_text(c));
  return v;
}

}  // namespace

bool ProbeTable::is_single(const PositionFilter& at) const {
  return std::find(single.begin(), single.end(), at) != single.end();
}

bool takes_mean(ProbeMode mode) {
  return mode == ProbeMode::mean || mode == ProbeMode::direct_const ||
         mode == ProbeMode::remove_const;
}

std::vector<ProbeReader> probe_readers(int n_layers, bool each) {
  std::vector<ProbeReader> readers = {{"all norms", {}},
                                      {"attention norms", {"ln1"}},
                                      {"FFN norms", {"ln2"}},
                                      {"final norm", {"ln_final"}}};
  if (!each) return readers;
  for (int layer = 0; layer < n_layers; ++layer)
    for (const char* role : {"ln1", "ln2"}) {
      const std::string name = fmt::format("blocks.{}.{}", layer, role);
      readers.push_back({name, {name}});
    }
  return readers;
}

std::vector<ProbeRow> planned_probes(const std::vector<ProbeReader>& readers,
                                     const std::vector<PositionFilter>& positions,
                                     const std::vector<ProbeMode>& modes) {
  std::vector<ProbeRow> rows;
  for (const ProbeReader& reader : readers) {
    for (const PositionFilter& at : positions)
      for (const ProbeMode mode : modes) rows.push_back({reader, at, mode});
    rows.push_back({reader, {}, ProbeMode::direct_const, true});
  }
  return rows;
}

WhatIf probe_edits(const ProbeRow& row, const std::vector<int>& dims, double tau) {
  NormProbe probe;
  probe.mode = row.mode;
  probe.tau = row.mode == ProbeMode::clamp ? tau : 0;
  probe.dims = IndexSet(dims);
  probe.tokens = row.at;
  probe.norms = row.reader.norms;
  return {probe};
}

std::vector<ProbeVerdict> probe_verdicts(const ProbeTable& table) {
  std::vector<ProbeVerdict> verdicts;
  for (const Costs& costs : costs_of(table)) verdicts.push_back(verdict_of(costs));
  return verdicts;
}

}  // namespace sinkscope
