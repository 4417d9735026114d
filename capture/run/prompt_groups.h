// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "capture/engine.h"
#include "capture/prediction.h"

namespace sinkscope {

// The groups of a recording that goes on: what is done, the runs whose states are kept, the others.
// Throws Error{corrupt} for runs that the request has not.
std::vector<std::pair<int, int>> resumed_groups(const CaptureRequest& request, const ArchSpec& spec,
                                                const RecordingState& state);

// Whether the baseline of this run, a twin, is not run as one of the request's runs: it is in
// another capture or recorded already.
bool has_other_baseline(const CaptureRequest& request, std::size_t run);
// Whether it has to be run again, unrecorded: its final norm is not known.
bool is_run_again(const CaptureRequest& request, std::size_t run);

// Prompts under what-ifs advance together, and with them whatever runs beside them, so all have to
// fit the budget. Throws Error{invalid_argument}.
void require_one_group(const CaptureRequest& request, const ArchSpec& spec);
[[noreturn]] void refuse_groups(std::int64_t activation_budget);

at::ScalarType scalar_type(RunDtype dtype);

}  // namespace sinkscope
