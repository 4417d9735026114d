// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/ATen.h>

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "capture/edits/what_if_pass.h"
#include "capture/engine.h"
#include "capture/record/recorder.h"

namespace sinkscope {

// The what-ifs of the edited runs, by their text.
using WhatIfs = std::map<std::string, std::unique_ptr<WhatIfPass>>;
WhatIfs what_ifs_of(const CaptureRequest& request, const ModelFiles& model, at::Device device);

AttentionBody body_of(const CaptureRequest& request, at::Device device);

// Engine::capture, within inference mode and with the threads already set.
std::optional<CaptureSummary> capture_runs(const ModelFiles& model, const CaptureRequest& request,
                                           CaptureWriter& writer, JobContext job);

}  // namespace sinkscope
