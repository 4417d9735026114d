// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/batch_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/capture_reader.h"
#include "core/json_numbers.h"
#include "core/mean_loss.h"
#include "core/number_text.h"
#include "core/sink_conventions.h"
#include "core/sink_report.h"

namespace sinkscope {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

void put_residual(const ResidualReport& residual, BatchRow& row) {
  row.max_abs = kNaN;
  for (std::size_t s = 0; s < residual.max_abs.size(); ++s) {
    const Peak& peak = residual.max_abs[s];
    if (peak.token < 0 || peak.value <= row.max_abs) continue;
    row.max_abs = peak.value;
    row.max_abs_site = residual.sites[s];
    row.max_abs_token = peak.token;
    row.max_abs_dim = peak.dim;
  }
  for (const ResidualSink& sink : residual.sinks) row.sink_dims.push_back(sink.dim);
}

// Columns of the numbers, in the order in which runs bring them.
std::vector<std::string> number_names(const BatchReport& report) {
  std::vector<std::string> names;
  for (const BatchRow& row : report.rows)
    for (const auto& [name, value] : row.numbers)
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  return names;
}

double number(const BatchRow& row, const std::string& name) {
  for (const auto& [own, value] : row.numbers)
    if (own == name) return value;
  return kNaN;
}

std::string index_text(int index) { return index < 0 ? "" : std::to_string(index); }

nlohmann::ordered_json row_json(const BatchRow& row, JsonNumbers& numbers) {
  nlohmann::ordered_json out = {
      {"entry", row.entry},     {"file", row.file},
      {"model", row.model},     {"prompt", row.prompt},
      {"options", row.options}, {"run", row.run},
      {"name", row.name},       {"mean_loss", numbers.number(row.mean_loss)}};
  for (const auto& [name, value] : row.numbers) out[name] = numbers.number(value);
  out["residual.max_abs"] = {{"value", numbers.number(row.max_abs)},
                             {"site", row.max_abs_site},
                             {"token", row.max_abs_token},
                             {"dim", row.max_abs_dim}};
  out["sink_tokens"] = row.sink_tokens;
  out["sink_dims"] = row.sink_dims;
  return out;
}

}  // namespace

std::vector<BatchRow> batch_rows(const BatchEntry& entry) {
  const auto reader = CaptureReader::open(*entry.flags.output);
  const SinkReport report = sink_report(*reader, reader->runs(), SinkOptions{});
  std::vector<BatchRow> rows;
  for (const RunReport& run : report.runs) {
    BatchRow row;
    row.entry = entry.number;
    row.file = *entry.flags.output;
    row.model = entry.model;
    row.prompt = entry.prompt;
    row.options = entry.options;
    row.run = run.name;
    row.name = run.input.name;
    row.mean_loss = mean_loss(*reader, {run.name});
    for (const Quantity& quantity : quantities(run))
      if (quantity.axis == Quantity::Axis::none && quantity.values.size() == 1)
        row.numbers.emplace_back(quantity.name, quantity.values.front());
    for (const SinkToken& token : run.attention.sink_tokens) row.sink_tokens.push_back(token.token);
    put_residual(run.residual, row);
    rows.push_back(std::move(row));
  }
  return rows;
}

nlohmann::ordered_json batch_json(const BatchReport& report) {
  JsonNumbers numbers;
  nlohmann::ordered_json out = {
      {"schema", "sinkscope.batch/1"},
      {"conventions",
       {{"runs",
         "numbers are those of sinkscope sinks with its default criteria: epsilon 0.3, key "
         "0, all positions; indices from 0"},
        {"mean_loss", "mean negative log-likelihood of the next token in nats"}}},
      {"manifest", report.manifest},
      {"shard", {{"index", report.shard.index}, {"count", report.shard.count}}},
      {"manifest_entries", report.n_manifest},
      {"entries", report.n_entries},
      {"recorded", report.n_recorded},
      {"whole_already", report.n_whole_already},
      {"unchecked", nlohmann::ordered_json::array()},
      {"failed", nlohmann::ordered_json::array()},
      {"runs", nlohmann::ordered_json::array()}};
  for (const BatchUnchecked& one : report.unchecked)
    out["unchecked"].push_back(
        {{"entry", one.entry}, {"where", one.where}, {"file", one.file}, {"reason", one.reason}});
  for (const BatchFailure& failed : report.failed)
    out["failed"].push_back({{"entry", failed.entry},
                             {"where", failed.where},
                             {"file", failed.file},
                             {"exit_code", failed.failure.code},
                             {"error", failed.failure.message}});
  for (const BatchRow& row : report.rows) out["runs"].push_back(row_json(row, numbers));
  out["non_finite_values"] = numbers.n_non_finite();
  return out;
}

std::string batch_csv(const BatchReport& report) {
  const std::vector<std::string> names = number_names(report);
  std::string table = "entry,file,model,prompt,options,run,name,mean_loss";
  for (const std::string& name : names) table += "," + name;
  table += ",residual.max_abs,max_abs_site,max_abs_token,max_abs_dim,sink_tokens,sink_dims\n";
  for (const BatchRow& row : report.rows) {
    table += fmt::format("{},{},{},{},{},{},{},{}", row.entry, csv_field(row.file),
                         csv_field(row.model), csv_field(row.prompt), csv_field(row.options),
                         row.run, csv_field(row.name), csv_number(row.mean_loss));
    for (const std::string& name : names) table += "," + csv_number(number(row, name));
    table += fmt::format(",{},{},{},{},{},{}\n", csv_number(row.max_abs), row.max_abs_site,
                         index_text(row.max_abs_token), index_text(row.max_abs_dim),
                         fmt::join(row.sink_tokens, " "), fmt::join(row.sink_dims, " "));
  }
  return table;
}

std::string batch_text(const BatchReport& report) {
  std::string text = fmt::format("{} of {} entries are recorded",
                                 report.n_recorded + report.n_whole_already, report.n_entries);
  if (report.n_whole_already > 0)
    text += fmt::format(", {} of them were whole already", report.n_whole_already);
  if (!report.unchecked.empty())
    text += fmt::format(" ({} unchecked, its text or model is gone)", report.unchecked.size());
  if (report.shard.count > 1)
    text += fmt::format("; shard {} of {}, the manifest has {}", report.shard.index,
                        report.shard.count, report.n_manifest);
  text += "\n";
  if (report.rows.empty()) return text;
  std::size_t width = 4;
  for (const BatchRow& row : report.rows)
    width = std::max(width, row.file.size() + row.run.size() + 2);
  width = std::min<std::size_t>(width, 60);
  text +=
      fmt::format("\n  {}  tokens    loss  sink ratio  sink tokens  max |x|     dim  sink dims\n",
                  pad_right("run", static_cast<int>(width)));
  for (const BatchRow& row : report.rows)
    text += fmt::format("  {}  {:6}  {}  {}  {}  {}  {:6}  {}\n",
                        pad_right(row.file + "::" + row.run, static_cast<int>(width)),
                        number(row, "tokens"), pad_left(readable(row.mean_loss), 6),
                        pad_left(readable(number(row, "attention.gu.sink_ratio")), 10),
                        pad_left(readable_list(row.sink_tokens, 3), 11),
                        pad_left(readable(row.max_abs), 9), index_text(row.max_abs_dim),
                        readable_list(row.sink_dims, 3));
  return text;
}

}  // namespace sinkscope
