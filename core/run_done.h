// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

namespace sinkscope {

class CaptureReader;

// Whether a run has all it will have: its blocks and what comes after the last one (final norm,
// logits). whole_layers() counts blocks only. Throws what CaptureReader throws.
bool is_run_done(const CaptureReader& reader, const std::string& run);

}  // namespace sinkscope
