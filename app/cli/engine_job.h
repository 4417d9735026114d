// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>

#include "app/cli/console.h"
#include "app/cli/progress.h"
#include "core/job.h"

namespace sinkscope {

// Runs a long job on a thread of its own, while this one shows progress and listens: SIGINT or
// SIGTERM asks the job to stop, a second one ends the process. Rethrows what the job throws.
// `place`: which of several jobs it is.
void run_with_progress(const std::function<void(JobContext)>& job, int n_layers, ProgressMode mode,
                       Console& console, const JobPlace& place = {});

}  // namespace sinkscope
