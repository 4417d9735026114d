// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>

#include <cmath>

#include "core/number_text.h"
#include "core/what_if/outcome.h"

namespace sinkscope {
namespace {

struct Row {
  std::string quantity;
  std::string layer{}, head{}, site{}, token{};  // empty where they mean nothing
  Compared<double> values{std::nan(""), std::nan("")};
};

void append(std::string& table, const std::string& run, const Row& row) {
  table += fmt::format("{},{},{},{},{},{},{},{}\n", run, row.quantity, row.layer, row.head,
                       csv_field(row.site), row.token, csv_number(row.values.baseline),
                       csv_number(row.values.edited));
}

void append_cells(std::string& table, const std::string& run, const ComparedQuantity& q,
                  const WhatIfOutcome& outcome) {
  const auto n_cols = static_cast<std::size_t>(q.shape.cols);
  for (std::size_t i = 0; i < q.values.baseline.size(); ++i) {
    Row row{.quantity = q.shape.name};
    row.values = {q.values.baseline[i], q.values.edited.at(i)};
    switch (q.shape.axis) {
      case Quantity::Axis::none:
        break;
      case Quantity::Axis::layer:
        row.layer = std::to_string(outcome.attention_layers.at(i));
        break;
      case Quantity::Axis::layer_head:
        row.layer = std::to_string(outcome.attention_layers.at(i / n_cols));
        row.head = std::to_string(i % n_cols);
        break;
      case Quantity::Axis::site:
        row.site = outcome.sites.at(i);
        break;
      case Quantity::Axis::tensor:
        row.site = outcome.tensors.at(i);
        break;
    }
    append(table, run, row);
  }
}

}  // namespace

std::string outcome_csv(const WhatIfOutcome& outcome) {
  std::string table = "run,quantity,layer,head,site,token,baseline,edited\n";
  const double none = std::nan("");
  if (outcome.has_head) {
    append(table, "all", {.quantity = "loss", .values = outcome.loss});
    append(table, "all", {.quantity = "kl.mean", .values = {none, outcome.kl_mean}});
    append(table, "all", {.quantity = "kl.max", .values = {none, outcome.kl_max}});
  }
  if (const auto& change = outcome.state_change) {
    append(table, "all", {.quantity = "final_norm_change.mean", .values = {none, change->mean}});
    append(table, "all", {.quantity = "final_norm_change.max", .values = {none, change->largest}});
  }
  for (const auto& [name, values] : outcome.metrics)
    if (name.ends_with(".largest")) append(table, "all", {.quantity = name, .values = values});
  for (const ComparedQuantity& q : outcome.tables) append_cells(table, "all", q, outcome);
  for (const RunOutcome& run : outcome.runs) {
    const std::string name = fmt::format("run{}", run.number);
    if (outcome.has_head) append(table, name, {.quantity = "loss", .values = run.loss});
    for (std::size_t t = 0; t < run.kl.size(); ++t)
      append(table, name,
             {.quantity = "kl", .token = std::to_string(t), .values = {none, run.kl[t]}});
    for (const ComparedQuantity& q : run.quantities) append_cells(table, name, q, outcome);
  }
  return table;
}

}  // namespace sinkscope
