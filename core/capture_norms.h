// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "core/capture_layout.h"
#include "core/capture_reader.h"

namespace sinkscope {

// The norms that a capture keeps of its model.
std::vector<NormFacts> read_norms(const CaptureReader& reader, const std::string& run);

// Whether the norms in front of the halves of the blocks read residual/stream; not where they read
// mixes of it (attention over depth), which the stream alone cannot give.
bool norms_read_stream(const CaptureReader& reader, const std::string& run);

}  // namespace sinkscope
