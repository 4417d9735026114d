// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/what_if_plan.h"
#include "core/job.h"
#include "core/sink_report.h"

namespace sinkscope {

// What is known of a run of a model as it is, so that its what-ifs need not run it again.
struct KnownBaseline {
  std::string path, run;                     // a capture that holds it
  std::vector<float> final_norm;             // [T, D] where no capture has it; empty = not known
  std::shared_ptr<const SinkReport> report;  // with default options; null = not read yet
};

// Records a plan's run and its edited twin into a new capture at `path`, replacing what is there.
// The run is copied out of `known` where that capture is whole, of this model and these tokens, and
// was made by this engine in the same way (device, LibTorch, kernel, threads, arithmetic);
// otherwise the model runs it beside the twin. Either way the file is the same to the bit. What
// comes back is known for the next what-if of the run. On the caller's thread. Canceled: nullopt;
// what is unfinished lies in `path`.part. Throws what record_capture and CaptureReader throw.
std::optional<KnownBaseline> record_what_if(const ModelFiles& model, const WhatIfPlan& plan,
                                            const std::string& path, const KnownBaseline& known,
                                            JobContext job);

}  // namespace sinkscope
