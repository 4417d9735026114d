// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/cli/console.h"
#include "core/capture_reader.h"

namespace sinkscope {

// Whether the file begins like an HDF5 file, whatever its name.
bool looks_like_capture(const std::string& path);

// The runs that RUN.h5::run3 or --run NAME|all mean. Neither: the file's first run, which is said
// where there are several. Throws Error{not_found} naming the runs there are, and
// Error{invalid_argument} where both are given and differ.
std::vector<std::string> pick_runs(const CaptureReader& reader, const std::string& in_path,
                                   const std::optional<std::string>& flag, Console& console);

// The same for verbs that take one run: "all" is Error{invalid_argument}.
std::string pick_run(const CaptureReader& reader, const std::string& in_path,
                     const std::optional<std::string>& flag, Console& console);

}  // namespace sinkscope
