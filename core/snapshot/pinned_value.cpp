// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/snapshot/pinned_value.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/snapshot/attention_snapshot.h"
#include "core/snapshot/residual_snapshot.h"
#include "core/state_rows.h"

namespace sinkscope {
namespace {

int slot_of(const std::vector<int>& list, int value) {
  const auto found = std::find(list.begin(), list.end(), value);
  return found == list.end() ? -1 : static_cast<int>(found - list.begin());
}

// One number of a dataset; nullopt where it lies outside.
std::optional<double> value_at(const CaptureReader& reader, const std::string& run,
                               const std::string& dataset, const std::vector<std::int64_t>& place) {
  if (!reader.has(run, dataset)) return std::nullopt;
  const std::vector<std::int64_t> dims = reader.dims(run, dataset);
  for (std::size_t i = 0; i < place.size(); ++i)
    if (place[i] < 0 || place[i] >= dims[i]) return std::nullopt;
  return reader.read_f64(run, dataset, place, std::vector<std::int64_t>(place.size(), 1)).front();
}

// From the recorded map, else from the exact window; a thumbnail's cell is another quantity.
std::optional<double> attention_at(const CaptureReader& reader, const std::string& run,
                                   const RunFacts& facts, const CellRef& cell) {
  if (cell.key > cell.query) return std::nullopt;
  const int layer = slot_of(facts.pattern_layers, cell.layer);
  const int head = slot_of(facts.pattern_heads, cell.head);
  if (facts.has_pattern && layer >= 0 && head >= 0) {
    const int row = slot_of(reader.read_i32(run, "attention/pattern_rows"), cell.query);
    if (row >= 0) return value_at(reader, run, "attention/pattern", {layer, head, row, cell.key});
  }
  const int slot = slot_of(facts.attention_layers, cell.layer);
  return value_at(reader, run, "attention/window", {slot, cell.head, cell.query, cell.key});
}

std::optional<double> score_at(const CaptureReader& reader, const std::string& run,
                               const CellRef& cell, ScoreKind kind) {
  OverviewRequest request;
  request.run = run;
  const OverviewSnapshot overview = read_overview(reader, request);
  const Grid& grid = overview.score(kind);
  const int column = slot_of(overview.layers, cell.layer);
  if (column < 0 || cell.head < 0 || cell.head >= grid.rows()) return std::nullopt;
  return grid.at(cell.head, column);
}

std::optional<double> state_at(const CaptureReader& reader, const std::string& run,
                               const PinnedCell& pin) {
  const std::vector<std::string> sites = reader.read_texts(run, "residual/sites");
  const auto site = std::find(sites.begin(), sites.end(), pin.name);
  if (site == sites.end()) return std::nullopt;
  for (const char* dataset : {"residual/stream", "residual/window"})
    if (const auto value =
            !reader.has(run, dataset)
                ? std::nullopt
                : value_at(reader, run, dataset,
                           state_place(reader.dims(run, dataset), site - sites.begin(),
                                       pin.cell.token, pin.cell.dim)))
      return value;
  return std::nullopt;
}

std::optional<double> mean_state_at(const CaptureReader& reader, const std::string& run,
                                    const CellRef& cell) {
  ResidualRequest request;
  request.run = run;
  request.order = DimOrder::given;
  request.given_order = {cell.dim};
  request.n_tokens = cell.token + 1;
  request.source = ResidualSource::window;
  const ResidualSnapshot snapshot = read_residual(reader, request);
  return cell.token < snapshot.map.rows() ? std::optional(snapshot.map.at(cell.token, 0))
                                          : std::nullopt;
}

std::optional<double> gain_at(const CaptureReader& reader, const std::string& run,
                              const PinnedCell& pin) {
  const std::size_t slash = pin.name.find('/');  // "ln1/pre_gain"
  const std::string group = "norm/" + pin.name.substr(0, slash);
  if (!reader.has(run, group)) return std::nullopt;
  const int row = slot_of(reader.read_i32(run, group + "/layers"), pin.cell.layer);
  const auto gain =
      value_at(reader, run, group + (slash == std::string::npos ? "/gain" : "/pre_gain"),
               {row, pin.cell.dim});
  return gain ? std::optional(std::abs(*gain)) : std::nullopt;
}

}  // namespace

std::optional<double> pinned_gain(const std::vector<NormFacts>& norms, const PinnedCell& pin) {
  if (pin.quantity != PinnedCell::Quantity::gain) return std::nullopt;
  const std::size_t slash = pin.name.find('/');  // "ln1/pre_gain"
  const std::string role = pin.name.substr(0, slash);
  for (const NormFacts& facts : norms) {
    if (facts.role != role) continue;
    const int row = slot_of(facts.layers, pin.cell.layer);
    const std::vector<float>& gains = slash == std::string::npos ? facts.gain : facts.pre_gain;
    if (row < 0 || pin.cell.dim < 0 || pin.cell.dim >= facts.width || gains.empty())
      return std::nullopt;
    const auto place = static_cast<std::size_t>(row) * static_cast<std::size_t>(facts.width) +
                       static_cast<std::size_t>(pin.cell.dim);
    return std::abs(static_cast<double>(gains.at(place)));
  }
  return std::nullopt;
}

std::optional<double> read_pinned(const CaptureReader& reader, const std::string& run,
                                  const PinnedCell& pin) {
  const RunFacts facts = read_run_facts(reader, run);
  if (pin.cell.layer >= facts.whole_layers) return std::nullopt;
  switch (pin.quantity) {
    case PinnedCell::Quantity::attention:
      return facts.has_attention ? attention_at(reader, run, facts, pin.cell) : std::nullopt;
    case PinnedCell::Quantity::score:
      return facts.has_attention ? score_at(reader, run, pin.cell, pin.score) : std::nullopt;
    case PinnedCell::Quantity::residual:
      return facts.has_residual ? state_at(reader, run, pin) : std::nullopt;
    case PinnedCell::Quantity::residual_mean:
      if (!facts.has_residual || pin.cell.dim >= facts.model.state_width()) return std::nullopt;
      return mean_state_at(reader, run, pin.cell);
    case PinnedCell::Quantity::gain:
      return gain_at(reader, run, pin);
    case PinnedCell::Quantity::shown:
      break;
  }
  return std::nullopt;
}

}  // namespace sinkscope
