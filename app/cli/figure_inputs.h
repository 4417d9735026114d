// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/cli/console.h"
#include "core/capture_reader.h"
#include "core/figure/make_figure.h"

namespace sinkscope {

// The inputs of a request with the files behind them held open.
struct OpenedInputs {
  std::vector<std::unique_ptr<CaptureReader>> captures;
  std::vector<FigureInput> inputs;  // in the request's order, names all different
};

// A capture is opened, of a model the norms are read. Throws Error: not_found, corrupt,
// unsupported.
OpenedInputs open_figure_inputs(const FigureRequest& request, Console& console);

// Names that tell inputs apart: the models' where they differ, else the files', else the runs',
// else a number behind them.
std::vector<std::string> distinct_names(const std::vector<std::string>& models,
                                        const std::vector<std::string>& files,
                                        const std::vector<std::string>& runs);

}  // namespace sinkscope
