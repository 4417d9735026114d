// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>

#include "core/capture_layout.h"
#include "core/h5/dataset.h"

namespace sinkscope {

// Writes the values of those datasets of run `run` that are known before the model runs; leaves the
// others as they are.
void write_known_values(const CaptureLayout& layout, int run, const std::string& path,
                        h5::Dataset& dataset);

}  // namespace sinkscope
