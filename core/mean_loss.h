// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "core/capture_reader.h"

namespace sinkscope {

// Mean of logits/loss, nats, over positions 1 … T−1 of all these runs together; NaN where a run has
// none (a model without a head) or no position is scored. Errors: those of the reader.
double mean_loss(const CaptureReader& reader, const std::vector<std::string>& runs);

}  // namespace sinkscope
