// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

#include "core/capture_layout.h"
#include "core/capture_reader.h"

namespace sinkscope {

// What makes two recordings the same, to the bit: the command, the model, the runs' names and
// tokens, what is recorded, and all that the arithmetic depends on. JSON text of one object, a
// field for each.
std::string recording_request(const CaptureLayout& layout);

// Throws Error{invalid_argument} naming the first field in which a request differs from the one
// that `path` was begun with, with both values; Error{corrupt} when `begun` is no such text.
void require_same_request(const std::string& path, const std::string& begun,
                          const std::string& now);

// Throws Error{invalid_argument} naming the first of model, command, runs, names and tokens in
// which the layout differs from a capture that is there already; what CaptureReader throws.
void require_same_recording(const CaptureReader& reader, const CaptureLayout& layout);

// The same of the command alone.
void require_same_command(const CaptureReader& reader, const std::string& command);

}  // namespace sinkscope
