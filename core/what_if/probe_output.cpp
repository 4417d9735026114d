// SPDX-License-Identifier: GPL-3.0-or-later
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/json_numbers.h"
#include "core/what_if/probe_table.h"

namespace sinkscope {
namespace {

const char* const kLossConvention =
    "mean negative log-likelihood of the next token in nats over positions 1 to T-1 of all runs, "
    "probed minus unprobed";
const char* const kKlConvention =
    "mean over positions 0 to T-2 of KL(model || probed) of the next token's distribution, nats";

std::string mode_name(const ProbeRow& row) {
  return row.is_control ? "direct_const at all positions" : name_of(row.mode);
}

template <class T>
bool add_new(std::vector<T>& list, const T& value) {
  if (std::find(list.begin(), list.end(), value) != list.end()) return false;
  list.push_back(value);
  return true;
}

// One line a mode, one column a reader.
void add_table(std::string& text, const ProbeTable& table, const PositionFilter& at) {
  std::vector<std::string> readers;
  std::vector<ProbeMode> modes;
  for (const ProbeRow& row : table.rows) {
    if (row.is_control || !(row.at == at)) continue;
    add_new(readers, row.reader.name);
    add_new(modes, row.mode);
  }
  text += fmt::format("\nedited positions: {}\n  {:<14}", at.text(), "dloss (nats)");
  for (const std::string& reader : readers) text += fmt::format(" {:>16}", reader);
  text += '\n';
  for (const ProbeMode mode : modes) {
    text += fmt::format("  {:<14}", name_of(mode));
    for (const std::string& reader : readers)
      for (const ProbeRow& row : table.rows)
        if (!row.is_control && row.at == at && row.mode == mode && row.reader.name == reader)
          text += fmt::format(" {:>+16.4f}", row.delta_loss);
    text += '\n';
  }
  if (table.is_single(at))
    text +=
        "  mean, direct_const, remove_const: not measured, a mean over one position is its value\n";
}

}  // namespace

std::string probe_text(const ProbeTable& table) {
  std::string text =
      fmt::format("{}: dimension {} as its norms see it, {} tokens, loss {:.4f}\n", table.model,
                  fmt::join(table.dims, ", "), table.n_tokens, table.loss);
  std::vector<PositionFilter> positions;
  for (const ProbeRow& row : table.rows)
    if (!row.is_control) add_new(positions, row.at);
  for (const PositionFilter& at : positions) add_table(text, table, at);
  for (const PositionFilter& at : positions) {
    text += fmt::format("\nat positions {}:\n", at.text());
    for (const ProbeVerdict& verdict : probe_verdicts(table))
      if (verdict.at == at) text += fmt::format("  {}\n", verdict.sentence);
  }
  return text;
}

nlohmann::ordered_json probe_json(const ProbeTable& table) {
  JsonNumbers numbers;
  nlohmann::ordered_json json = {
      {"schema", "sinkscope.probe/1"},
      {"conventions",
       {{"delta_loss", kLossConvention},
        {"kl", kKlConvention},
        {"mean", "E over the edited positions of all runs, at that norm, in the probed pass"},
        {"clamp", fmt::format("|x_d| <= {} rms of the other dimensions", table.tau)},
        {"role",
         "rescaler: denominator >= half of direct; flag or constant bias channel: direct >= half "
         "of denominator, a constant bias channel where direct_const, at all positions and at the "
         "edited ones, costs less than 0.02 nats or 5 % of direct; none below 0.02 nats"},
        {"not_measured",
         "mean, direct_const and remove_const at a single position: a mean over it is its value"}}},
      {"model", table.model},
      {"dims", table.dims},
      {"tokens", table.n_tokens},
      {"loss", numbers.number(table.loss)},
      {"not_measured", nlohmann::ordered_json::array()},
      {"probes", nlohmann::ordered_json::array()},
      {"verdicts", nlohmann::ordered_json::array()}};
  for (const PositionFilter& at : table.single)
    for (const ProbeMode mode : {ProbeMode::mean, ProbeMode::direct_const, ProbeMode::remove_const})
      json["not_measured"].push_back({{"at", at.text()}, {"mode", name_of(mode)}});
  for (const ProbeRow& row : table.rows)
    json["probes"].push_back({{"reader", row.reader.name},
                              {"at", row.at.text()},
                              {"mode", name_of(row.mode)},
                              {"control", row.is_control},
                              {"delta_loss", numbers.number(row.delta_loss)},
                              {"kl", numbers.number(row.kl)}});
  for (const ProbeVerdict& verdict : probe_verdicts(table))
    json["verdicts"].push_back({{"reader", verdict.reader.name},
                                {"at", verdict.at.text()},
                                {"role", verdict.role},
                                {"sentence", verdict.sentence}});
  json["non_finite_values"] = numbers.n_non_finite();
  return json;
}

std::string probe_csv(const ProbeTable& table) {
  std::string text = "reader,at,mode,delta_loss,kl\n";
  for (const ProbeRow& row : table.rows)
    text += fmt::format("{},{},{},{},{}\n", row.reader.name, row.at.text(), mode_name(row),
                        row.delta_loss, row.kl);
  return text;
}

}  // namespace sinkscope
