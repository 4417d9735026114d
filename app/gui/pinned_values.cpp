// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/pinned_values.h"

#include <filesystem>
#include <set>

#include "core/error.h"

namespace sinkscope {
namespace {

std::optional<double> value_of(OpenFiles& files, const PinColumn& run, const PinnedCell& cell) {
  try {
    return read_pinned(files.reader(run.path), run.run, cell);
  } catch (const Error&) {
    return std::nullopt;  // it is said where that run is looked at
  }
}

}  // namespace

std::vector<PinColumn> pin_columns(const std::vector<std::shared_ptr<const RunFacts>>& runs) {
  std::set<std::string> paths;
  for (const auto& facts : runs) paths.insert(facts->path);
  std::vector<PinColumn> columns;
  for (const auto& facts : runs) {
    std::string title = run_label(*facts);
    if (paths.size() > 1)
      title = std::filesystem::path(facts->path).stem().string() + " · " + title;
    columns.push_back({facts->path, facts->run, std::move(title)});
  }
  return columns;
}

PinnedValues read_pins(OpenFiles& files, const PinsRequest& request, const std::stop_token& stop) {
  PinnedValues out;
  out.request = request;
  for (const PinnedCell& cell : request.cells) {
    std::vector<std::optional<double>> row;
    for (const PinColumn& run : request.runs) {
      if (stop.stop_requested()) throw Error(ErrorKind::invalid_argument, "canceled");
      row.push_back(value_of(files, run, cell));
    }
    out.values.push_back(std::move(row));
  }
  return out;
}

}  // namespace sinkscope
