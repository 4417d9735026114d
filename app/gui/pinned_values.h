// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "app/gui/open_files.h"
#include "core/snapshot/pinned_value.h"

namespace sinkscope {

// A run or a model that is open, as the table of pins names it.
struct PinColumn {
  std::string path, run, title;  // run is empty for a model
  bool operator==(const PinColumn&) const = default;
};

struct PinsRequest {
  std::vector<PinnedCell> cells;
  std::vector<PinColumn> runs;
  bool operator==(const PinsRequest&) const = default;
};

// What every pin is in every run.
struct PinnedValues {
  PinsRequest request;
  std::vector<std::vector<std::optional<double>>> values;  // [cell][run]
};

// "run0", "other · run0" where several files are open. A model stands behind the runs, by its name,
// unless one of them is of it and has its gains.
std::vector<PinColumn> pin_columns(const std::vector<std::shared_ptr<const RunFacts>>& runs,
                                   const OpenModels& models);

// Runs on the reading worker's thread. A run that cannot be read has no values.
PinnedValues read_pins(OpenFiles& files, const OpenModels& models, const PinsRequest& request,
                       const std::stop_token& stop);

}  // namespace sinkscope
