// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/json_numbers.h"
#include "core/mechanism_report.h"
#include "core/sink_conventions.h"
#include "core/sink_report.h"

namespace sinkscope {
namespace {

using Json = nlohmann::ordered_json;
using Axis = Quantity::Axis;

Json sink_tokens_json(const AttentionSinks& attention, JsonNumbers& numbers) {
  Json out = Json::array();
  for (const SinkToken& t : attention.sink_tokens) {
    out.push_back({{"token", t.token},
                   {"text", t.text},
                   {"special", t.special},
                   {"heads", t.heads},
                   {"max_score", numbers.number(t.max_score)},
                   {"mean_score", numbers.number(t.mean_score)},
                   {"layer", t.layer},
                   {"head", t.head}});
  }
  return out;
}

Json gu_json(const GuReport& gu, JsonNumbers& numbers) {
  std::vector<double> mean, max, share;
  for (const HeadSummary& s : gu.layers) {
    mean.push_back(s.mean);
    max.push_back(s.max);
    share.push_back(s.share_above);
  }
  return {{"epsilon", gu.epsilon},
          {"key", gu.key},
          {"queries", gu.queries},
          {"score", numbers.matrix(gu.score)},
          {"sink_ratio", numbers.number(gu.sink_ratio.ratio)},
          {"cells", gu.sink_ratio.cells},
          {"cells_above", gu.sink_ratio.above},
          {"layer_mean", numbers.list(mean)},
          {"layer_max", numbers.list(max)},
          {"layer_share_above", numbers.list(share)}};
}

Json attention_json(const AttentionSinks& a, JsonNumbers& numbers) {
  if (a.layers.empty()) return {{"layers", Json::array()}};
  return {{"layers", a.layers},
          {"first_token_score",
           {{"with_row0", numbers.matrix(a.with_row0)},
            {"without_row0", numbers.matrix(a.without_row0)},
            {"mean_map",
             {{"with_row0", numbers.number(a.mean_map.with_row0)},
              {"without_row0", numbers.number(a.mean_map.without_row0)}}}}},
          {"gu", gu_json(a.gu, numbers)}};
}

Json residual_sinks_json(const std::vector<ResidualSink>& sinks, JsonNumbers& numbers) {
  Json out = Json::array();
  for (const ResidualSink& s : sinks) {
    out.push_back({{"dim", s.dim},
                   {"sites", s.n_sites},
                   {"site", s.site},
                   {"ratio", numbers.number(s.ratio)},
                   {"argmax_hit", numbers.number(s.argmax_hit)},
                   {"mean", numbers.number(s.mean)},
                   {"sd", numbers.number(s.sd)}});
  }
  return out;
}

// m2, m2_dim, argmax_hit, sorted dimensions, sinks: the same for one run and for all pooled.
void put_dims(const ResidualReport& r, JsonNumbers& numbers, Json& out) {
  std::vector<int> sink_dims;
  for (const ResidualSink& s : r.sinks) sink_dims.push_back(s.dim);
  out["sorted_dims"] = r.sorted_dims;
  out["sorted_dims_without_first"] = r.sorted_dims_without_first;
  out["first_permille_ratio"] = numbers.number(r.first_permille_ratio);
  if (!r.sorted_dims_without_first.empty()) {
    out["first_permille_ratio_without_first"] =
        numbers.number(r.first_permille_ratio_without_first);
  }
  out["m2"] = numbers.list(r.m2);
  out["m2_dim"] = r.m2_dim;
  out["argmax_hit"] = numbers.list(r.argmax_hit);
  out["sink_dims"] = sink_dims;
  out["residual_sinks"] = residual_sinks_json(r.sinks, numbers);
}

Json outlier_tensors_json(const OutlierTensors& t, JsonNumbers& numbers) {
  return {{"names", t.names},
          {"inf_norm", numbers.list(t.inf_norm)},
          {"kurtosis", numbers.list(t.kurtosis)},
          {"max_inf_norm", numbers.number(t.max_inf_norm)},
          {"max_ffn_inf_norm", numbers.number(t.max_ffn_inf_norm)},
          {"max_block_inf_norm", numbers.number(t.max_block_inf_norm)},
          {"avg_kurtosis", numbers.number(t.avg_kurtosis)},
          {"max_kurtosis", numbers.number(t.max_kurtosis)},
          {"max_block_kurtosis", numbers.number(t.max_block_kurtosis)}};
}

Json residual_json(const RunReport& run, JsonNumbers& numbers) {
  const ResidualReport& r = run.residual;
  Json max_abs = Json::array(), massive = Json::array(), kurtosis = Json::object();
  for (std::size_t s = 0; s < r.sites.size(); ++s) {
    const Peak& p = r.max_abs[s];
    max_abs.push_back({{"site", r.sites[s]},
                       {"value", p.token < 0 ? Json(nullptr) : numbers.number(p.value)},
                       {"token", p.token},
                       {"dim", p.dim}});
  }
  for (const MassiveActivation& m : r.massive) {
    massive.push_back({{"site", m.site},
                       {"value", numbers.number(m.value)},
                       {"token", m.token},
                       {"text", run.input.token_text.at(static_cast<std::size_t>(m.token))},
                       {"dim", m.dim},
                       {"ratio", numbers.number(m.ratio)}});
  }
  for (const auto& [flavor, values] : r.kurtosis) kurtosis[flavor] = numbers.list(values);
  Json out = {{"sites", r.sites},
              {"max_abs", std::move(max_abs)},
              {"median_abs", numbers.list(r.median_abs)},
              {"kurtosis", std::move(kurtosis)},
              {"massive_mode", to_string(r.massive_mode)},
              {"massive", std::move(massive)}};
  put_dims(r, numbers, out);
  if (!r.outlier_tensors.names.empty()) {
    out["outlier_tensors"] = outlier_tensors_json(r.outlier_tensors, numbers);
  }
  if (r.has_outlier_features) out["outlier_features"] = r.outlier_features;
  out["not_computed"] = r.not_computed;
  out["non_finite_recorded"] = r.non_finite.count;
  if (r.non_finite.count > 0) {
    out["first_non_finite"] = {{"site", r.non_finite.site.text()},
                               {"token", r.non_finite.token},
                               {"dim", r.non_finite.dim}};
  }
  return out;
}

// {"mean":…, "sd":…, "min":…, "max":…}, each shaped like the quantity.
Json spread_json(const SpreadTable& table, JsonNumbers& numbers) {
  const auto shaped = [&](double Spread::*field) -> Json {
    std::vector<double> values;
    for (const Spread& s : table.cells) values.push_back(s.*field);
    if (table.shape.axis == Axis::none) return numbers.number(values.at(0));
    if (table.shape.axis != Axis::layer_head) return numbers.list(values);
    return numbers.matrix(
        Eigen::Map<const MatrixD>(values.data(), table.shape.rows, table.shape.cols));
  };
  return {{"mean", shaped(&Spread::mean)},
          {"sd", shaped(&Spread::sd)},
          {"min", shaped(&Spread::min)},
          {"max", shaped(&Spread::max)}};
}

template <class Member>
Json counts_json(const std::vector<std::pair<Member, int>>& counts, const char* what) {
  Json out = Json::array();
  for (const auto& [member, runs] : counts) out.push_back({{what, member}, {"runs", runs}});
  return out;
}

// The key under which a quantity's spread stands. Where the pooled value has the plain name, the
// spread over the runs says so in its own.
Json::json_pointer spread_key(const std::string& name) {
  std::string path = "/" + name;
  for (char& c : path) {
    if (c == '.') c = '/';
  }
  for (const char* pooled : {"residual.m2", "residual.argmax_hit", "residual.first_permille_ratio",
                             "residual.first_permille_ratio_without_first"}) {
    if (name == pooled) path += "_over_runs";
  }
  return Json::json_pointer(path);
}

Json all_json(const AllRuns& all, JsonNumbers& numbers) {
  Json out = {{"runs", all.n_runs}};
  for (const SpreadTable& table : all.spreads) {
    out[spread_key(table.shape.name)] = spread_json(table, numbers);
  }
  out["runs_with_sink_token"] = counts_json(all.runs_with_sink_token, "token");
  out["runs_with_sink_text"] = counts_json(all.runs_with_sink_text, "text");
  Json& residual = out["residual"];
  residual["sites"] = all.residual.sites;
  put_dims(all.residual, numbers, residual);
  residual["runs_with_sink_dim"] = counts_json(all.runs_with_sink_dim, "dim");
  residual["runs_with_massive_dim"] = counts_json(all.runs_with_massive_dim, "dim");
  if (residual.contains("outlier_tensors")) {
    residual["outlier_tensors"]["max_inf_norm_of_means"] = numbers.number(all.max_inf_norm);
  }
  return out;
}

}  // namespace

Json sink_report_json(const SinkReport& report) {
  JsonNumbers numbers;
  Json conventions = Json::object();
  for (const auto& [what, how] : sink_conventions(report)) conventions[what] = how;
  Json runs = Json::array();
  for (const RunReport& run : report.runs) {
    runs.push_back({{"name", run.name},
                    {"title", run.input.name},
                    {"tokens", run.input.seq_len()},
                    {"bos_positions", run.input.bos_positions},
                    {"sink_tokens", sink_tokens_json(run.attention, numbers)},
                    {"attention", attention_json(run.attention, numbers)},
                    {"residual", residual_json(run, numbers)}});
    if (!run.mechanisms.empty())
      runs.back()["mechanisms"] = mechanisms_json(run.mechanisms, numbers);
  }
  const ModelFacts& m = report.model;
  Json out = {{"schema", "sinkscope.sinks/1"},
              {"conventions", std::move(conventions)},
              {"model",
               {{"name", m.name},
                {"architecture", m.architecture},
                {"fingerprint", m.fingerprint},
                {"n_layers", m.n_layers},
                {"n_heads", m.n_heads},
                {"n_kv_heads", m.n_kv_heads},
                {"d_model", m.d_model}}},
              {"complete", report.complete},
              {"runs", std::move(runs)}};
  if (m.n_streams > 1) out["model"]["n_streams"] = m.n_streams;
  if (!report.complete) out["layers_done"] = report.layers_done;
  if (!report.left_out.empty()) out["runs_left_out"] = report.left_out;
  out["all"] = all_json(report.all, numbers);
  out["findings"] = sink_findings(report);
  out["non_finite_values"] = numbers.n_non_finite();
  return out;
}

}  // namespace sinkscope
