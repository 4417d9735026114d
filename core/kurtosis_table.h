// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "core/residual_sinks.h"

namespace sinkscope {

// Columns over the sites, from the streamed statistics: <flavor>_tensor (all positions and
// dimensions of a state as one list), pearson_channel_mean and _max (over positions, one value a
// dimension).
void tensor_kurtosis(const std::vector<SiteStats>& sites, const SinkOptions& options,
                     ResidualReport& report);

// What only the recorded stream can say: pearson_token_mean and qualcomm_token_mean (over the
// dimensions of one position, averaged over positions), outlier features.
// stream_indices [S]: places of `sites` in residual/sites.
void stream_quantities(const CaptureReader& reader, const std::string& run, const RunInput& input,
                       const std::vector<SiteStats>& sites, const std::vector<int>& stream_indices,
                       const SinkOptions& options, ResidualReport& report);

// Infinity norm and kurtosis of the 5L+1 tensors; those without statistics are left out. Not
// computed for positions by id: norm and block outputs are not in residual/stream.
void outlier_tensors(RunStats& stats, const SinkOptions& options, int n_layers, int layers_end,
                     ResidualReport& report);

}  // namespace sinkscope
