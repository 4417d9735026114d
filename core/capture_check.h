// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "core/capture_reader.h"

namespace sinkscope {

// Paths of all datasets below a run's group, numbers and texts, in the order of the file. Throws
// Error{corrupt} where groups lie inside themselves, or there is no end of them.
std::vector<std::string> dataset_paths(const CaptureReader& reader, const std::string& run);

// Reads of every array of a run the first and the last line (all inner indices, at most 64 Ki
// numbers), of every text the whole, and says which could not be read and why: one sentence each.
// A file that a stranger made can do more than that to HDF5: a viewer that is not to go down with
// it lets another process look first.
std::vector<std::string> unreadable_arrays(const CaptureReader& reader, const std::string& run);

}  // namespace sinkscope
