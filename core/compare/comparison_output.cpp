// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/compare/comparison.h"
#include "core/json_numbers.h"
#include "core/number_text.h"

namespace sinkscope {
namespace {

using Json = nlohmann::ordered_json;

Json place_json(const SiteDifference& site) {
  Json place = Json::object();
  for (const auto& [axis, index] : site.place) place[axis] = index;
  return place;
}

Json site_json(const SiteDifference& site, JsonNumbers& numbers) {
  return {{"site", site.site},
          {"dataset", site.dataset},
          {"layer", site.layer},
          {"compared", site.n_compared},
          {"unequal", site.n_unequal},
          {"non_finite", site.n_non_finite},
          {"max_abs", numbers.number(site.largest)},
          {"scaled", numbers.number(site.scaled)},
          {"rms", numbers.number(site.rms())},
          {"a", numbers.number(site.value_a)},
          {"b", numbers.number(site.value_b)},
          {"at", place_json(site)},
          {"range", {numbers.number(site.low), numbers.number(site.high)}},
          {"whole", site.is_whole},
          {"judged", is_judged(site)}};
}

Json members_json(const MemberShift& shift) {
  return {{"only_a", shift.only_a}, {"only_b", shift.only_b}};
}

Json sinks_json(const RunComparison& run, JsonNumbers& numbers) {
  Json out = {{"scalars", Json::array()},
              {"head", nullptr},
              {"sink_tokens", members_json(run.sink_tokens)},
              {"sink_dims", members_json(run.sink_dims)},
              {"max_abs", nullptr}};
  for (const SinkShift& shift : run.shifts)
    out["scalars"].push_back(
        {{"name", shift.name}, {"a", numbers.number(shift.a)}, {"b", numbers.number(shift.b)}});
  if (run.head)
    out["head"] = {{"layer", run.head->layer},
                   {"head", run.head->place.front().second},
                   {"a", numbers.number(run.head->value_a)},
                   {"b", numbers.number(run.head->value_b)}};
  if (!run.largest) return out;
  const auto peak = [&](const Peak& p, const std::string& site) -> Json {
    return {{"site", site}, {"value", numbers.number(p.value)}, {"token", p.token}, {"dim", p.dim}};
  };
  out["max_abs"] = {{"a", peak(run.largest->first, run.largest_site_a)},
                    {"b", peak(run.largest->second, run.largest_site_b)}};
  return out;
}

Json run_json(const RunComparison& run, JsonNumbers& numbers) {
  Json out = {{"a", run.run_a},
              {"b", run.run_b},
              {"tokens_a", run.input_a.seq_len()},
              {"tokens_b", run.input_b.seq_len()},
              {"same_tokens", run.same_tokens},
              {"notes", run.notes},
              {"only_a", run.only_a},
              {"only_b", run.only_b},
              {"in_part", run.in_part},
              {"sites", Json::array()},
              {"indices", Json::array()}};
  for (const SiteDifference& site : run.sites) out["sites"].push_back(site_json(site, numbers));
  for (const IndexDifference& index : run.indices)
    out["indices"].push_back({{"dataset", index.dataset},
                              {"compared", index.n_compared},
                              {"unequal", index.n_unequal},
                              {"judged", is_judged(index)}});
  out["sinks"] = sinks_json(run, numbers);
  return out;
}

// The index of an axis whose name ends in `name`, "" without one.
std::string index_of(const SiteDifference& site, const std::string& name) {
  for (const auto& [axis, index] : site.place)
    if (axis == name || axis.ends_with(" " + name) || axis.starts_with(name + " "))
      return std::to_string(index);
  return "";
}

}  // namespace

Json comparison_json(const std::vector<Comparison>& comparisons,
                     const std::optional<Verdict>& verdict) {
  JsonNumbers numbers;
  Json out = {{"schema", "sinkscope.compare/1"},
              {"conventions",
               {{"max_abs", "largest |B - A| over values that are finite in both"},
                {"scaled", "largest |B - A| / max(1, |A|, |B|)"},
                {"range", "smallest and largest finite value of both"},
                {"layer", "block index from 0; -1 = none, or after the last block"},
                {"sinks", "as sinkscope sinks says with its default criteria"}}},
              {"comparisons", Json::array()},
              {"verdict", nullptr}};
  for (const Comparison& c : comparisons) {
    Json runs = Json::array();
    for (const RunComparison& run : c.runs) runs.push_back(run_json(run, numbers));
    out["comparisons"].push_back({{"a", c.path_a},
                                  {"b", c.path_b},
                                  {"model_a", c.model_a.name},
                                  {"model_b", c.model_b.name},
                                  {"complete", c.complete},
                                  {"runs_only_a", c.runs_only_a},
                                  {"runs_only_b", c.runs_only_b},
                                  {"runs", runs}});
  }
  if (verdict)
    out["verdict"] = {{"tolerance", verdict->tolerance},
                      {"within", verdict->is_within},
                      {"reasons", verdict->reasons}};
  out["non_finite_values"] = numbers.n_non_finite();
  return out;
}

std::string comparison_csv(const std::vector<Comparison>& comparisons) {
  std::string table =
      "a,run_a,b,run_b,site,dataset,layer,compared,unequal,non_finite,max_abs,scaled,rms,value_a,"
      "value_b,head,query,key,token,dim,low,high\n";
  for (const Comparison& c : comparisons)
    for (const RunComparison& run : c.runs)
      for (const SiteDifference& site : run.sites) {
        table += fmt::format(
            "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}", csv_field(c.path_a), run.run_a,
            csv_field(c.path_b), run.run_b, csv_field(site.site), csv_field(site.dataset),
            site.layer < 0 ? "" : std::to_string(site.layer), site.n_compared, site.n_unequal,
            site.n_non_finite, csv_number(site.largest), csv_number(site.scaled),
            csv_number(site.rms()), csv_number(site.value_a), csv_number(site.value_b));
        for (const char* axis : {"head", "query", "key", "token", "dim"})
          table += "," + index_of(site, axis);
        table += fmt::format(",{},{}\n", csv_number(site.low), csv_number(site.high));
      }
  return table;
}

}  // namespace sinkscope
