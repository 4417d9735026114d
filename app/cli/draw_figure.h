// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <string>

#include "app/cli/console.h"
#include "core/figure/figure_request.h"

namespace sinkscope {

// "pdf", "svg", "png" or "csv": the flag's, else the output's suffix, else pdf for "-".
// Throws Error{invalid_argument} for anything else.
std::string figure_format(const std::string& output, const std::optional<std::string>& flag);

// Opens the inputs, draws, and writes the file (or standard output for "-"): what the verb and the
// window's dialog both do. An existing file is refused without `force` before any work; a file that
// could not be finished is not there; a folder that is not there is made. Throws Error: those
// of the inputs, of make_figure, of the painter and of OutputFile.
void draw_figure(const FigureRequest& request, const std::string& output, const std::string& format,
                 bool force, Console& console);

}  // namespace sinkscope
