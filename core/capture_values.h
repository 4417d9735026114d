// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "core/capture_layout.h"

namespace sinkscope {

// What the lists of a run are indices into.
struct RunSizes {
  int n_layers = 0, n_heads = 0, vocab_size = 0, seq_len = 0;
};

// Blocks that a model has at most, and heads of a block; checkpoints are held to the same.
inline constexpr int kMostLayers = 1024, kMostHeads = 1 << 14;

// Throws Error{corrupt} unless the list `path` of a run (layers, heads, rows, positions, token ids)
// holds what core/FORMAT.md says: indices that exist, each once where they name an axis, or counts
// (as check_counts). Paths that are no such list hold anything.
void check_list(const std::string& path, const std::vector<int>& values, const RunSizes& sizes,
                const std::string& where);

// The same of names: each once.
void check_names(const std::vector<std::string>& names, const std::string& where);

// Throws Error{corrupt} for negative values of a count (statistics, what sees a key) other than −1,
// which marks what was never written. `path` may be any.
void check_counts(const std::string& path, const std::vector<double>& values,
                  const std::string& where);

}  // namespace sinkscope
