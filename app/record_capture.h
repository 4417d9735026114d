// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "capture/engine.h"
#include "core/error.h"

namespace sinkscope {

// Runs the request into a capture file at `path`, which is there and whole afterwards: loads the
// engine, makes the file meanwhile, records, finishes. On the caller's thread, as long as it takes.
// Canceled: nullopt. Canceled or failed on the way, the whole layers are in `path`.part, from where
// Existing::resume goes on. Throws Error: those of CaptureWriter, load_engine and Engine::capture.
// `fill` writes what the request calls recorded before the model runs; false = canceled.
using FillRuns = std::function<bool(CaptureWriter& writer)>;
std::optional<CaptureSummary> record_capture(const ModelFiles& model, const CaptureRequest& request,
                                             const CaptureLayout& layout, const std::string& path,
                                             CaptureWriter::Existing existing, JobContext job,
                                             const FillRuns& fill = {});

// "whole layers are in `path`.part", or "no layer in `path`.part is whole yet".
// "" where there is no such file. Throws what CaptureReader throws.
std::string kept_layers(const std::string& path);

// The failure of a recording to `path`, saying where its whole layers are if there are any.
Error with_kept_layers(const Error& error, const std::string& path);

}  // namespace sinkscope
