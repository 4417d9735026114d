// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "app/cli/console.h"
#include "app/cli/open_flags.h"
#include "app/cli/progress.h"
#include "capture/engine.h"

namespace sinkscope {

// Throws Error{unsupported} with the first of the model's obstacles when it cannot be run.
void require_runnable(const ModelFiles& model);

// Opens a model that is about to be run, and says its warnings. Throws what open_model and
// require_runnable throw.
std::unique_ptr<ModelFiles> open_runnable(const std::string& path, const OpenFlags& flags,
                                          Console& console);

// That a device which the request names is there: Error{device} otherwise. For "auto" and "cpu"
// the engine is not loaded.
void require_device(const CaptureRequest& request);

// Throws Error{invalid_argument} when the capture, or an unfinished `path`.part, is there already
// and may not be replaced: to be asked before minutes of work, not after.
void require_new_capture(const std::string& path, bool force);

// Runs the request into a capture file at `path`, which is there and whole afterwards. The engine
// works on a thread of its own, while this one shows progress and listens: SIGINT or SIGTERM asks
// it to stop, a second one ends the process. nullopt: stopped; whole layers are in `path`.part.
// Throws what the engine and the writer throw. `place`: which of several recordings it is.
std::optional<CaptureSummary> record_to_file(const ModelFiles& model, const CaptureRequest& request,
                                             const CaptureLayout& layout, const std::string& path,
                                             CaptureWriter::Existing existing, ProgressMode mode,
                                             Console& console, const JobPlace& place = {});

}  // namespace sinkscope
