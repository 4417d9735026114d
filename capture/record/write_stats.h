// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <string>

#include "capture/model/attention.h"
#include "capture/record/tap_stats.h"
#include "core/capture_writer.h"

namespace sinkscope {

// Puts one layer's statistics where core/FORMAT.md says.

// stats/<hook>: row `row` of every dataset. `norm_input`: statistics of what the norm reads, for
// the bound's ingredients; null for sites that are no norm. `median`: median |x| of residual sites.
void write_tap_stats(CaptureWriter& writer, int run, const std::string& hook, int row,
                     const TapStats& stats, const TapStats* norm_input,
                     std::optional<double> median);

// attention/*: row `row`.
void write_attention_stats(CaptureWriter& writer, int run, int row, const AttentionStats& stats);

}  // namespace sinkscope
