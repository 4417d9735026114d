// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <string>

#include "core/figure/figure.h"
#include "core/figure/make_figure.h"
#include "core/snapshot/attention_snapshot.h"

namespace sinkscope {

// The map that a request with a kind of attention means.
AttentionSnapshot attention_for(const FigureRequest& request, const FigureInput& input);

// Queries down, keys to the right; only the first n_tokens of both.
FigurePanel attention_panel(const std::string& title, const AttentionSnapshot& snapshot,
                            std::optional<int> n_tokens);

// s_incl of the rows that the map has: mean over rows of its first column (2601.22966, Figure 1).
double first_column_mean(const Grid& map);

}  // namespace sinkscope
