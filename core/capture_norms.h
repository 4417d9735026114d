// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "core/capture_layout.h"
#include "core/capture_reader.h"

namespace sinkscope {

// The norms that a capture keeps of its model.
std::vector<NormFacts> read_norms(const CaptureReader& reader, const std::string& run);

}  // namespace sinkscope
