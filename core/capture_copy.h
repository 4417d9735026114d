// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <stop_token>
#include <string>

#include "core/capture_reader.h"
#include "core/capture_writer.h"

namespace sinkscope {

// Taking a recorded run over into another capture, number by number, instead of running the model
// again.

// Whether the run holds every array that run `to_run` of the layout has, in its shape and type.
// Which model and tokens they are of is the caller's to know. Throws Error{corrupt}.
bool holds_run(const CaptureReader& from, const std::string& run, const CaptureLayout& layout,
               int to_run);

// Writes all numbers of a run that holds_run() into run `to_run`, bit for bit; texts, norms and
// provenance are the writer's own. At most 16 MiB in memory, or one row of an array that is longer.
// false = stopped on the way. Throws Error: corrupt, io.
bool copy_run(const CaptureReader& from, const std::string& run, CaptureWriter& to, int to_run,
              const std::stop_token& stop = {});

}  // namespace sinkscope
