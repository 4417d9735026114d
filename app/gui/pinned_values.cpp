// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/pinned_values.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/error.h"

namespace sinkscope {
namespace {

std::optional<double> value_of(OpenFiles& files, const OpenModels& models, const PinColumn& run,
                               const PinnedCell& cell) {
  if (run.run.empty()) {
    for (const auto& model : models)
      if (model->card.path == run.path) return pinned_gain(model->norms, cell);
    return std::nullopt;
  }
  try {
    return read_pinned(files.reader(run.path), run.run, cell);
  } catch (const Error&) {
    return std::nullopt;  // it is said where that run is looked at
  }
}

}  // namespace

std::vector<PinColumn> pin_columns(const std::vector<std::shared_ptr<const RunFacts>>& runs,
                                   const OpenModels& models) {
  std::set<std::string> paths;
  for (const auto& facts : runs) paths.insert(facts->path);
  std::vector<PinColumn> columns;
  for (const auto& facts : runs) {
    std::string title = run_label(*facts);
    if (paths.size() > 1)
      title = std::filesystem::path(facts->path).stem().string() + " · " + title;
    columns.push_back({facts->path, facts->run, std::move(title)});
  }
  for (const auto& model : models) {
    const auto is_run = [&](const auto& facts) {
      return facts->has_norms && facts->model.fingerprint == model->fingerprint;
    };
    if (std::any_of(runs.begin(), runs.end(), is_run)) continue;
    const std::string& name = model->card.spec.name;
    const bool is_only = std::count_if(models.begin(), models.end(), [&](const auto& other) {
                           return other->card.spec.name == name;
                         }) == 1;
    columns.push_back({model->card.path, "", is_only && !name.empty() ? name : model->card.path});
  }
  return columns;
}

PinnedValues read_pins(OpenFiles& files, const OpenModels& models, const PinsRequest& request,
                       const std::stop_token& stop) {
  PinnedValues out;
  out.request = request;
  for (const PinnedCell& cell : request.cells) {
    std::vector<std::optional<double>> row;
    for (const PinColumn& run : request.runs) {
      if (stop.stop_requested()) throw Error(ErrorKind::invalid_argument, "canceled");
      row.push_back(value_of(files, models, run, cell));
    }
    out.values.push_back(std::move(row));
  }
  return out;
}

}  // namespace sinkscope
