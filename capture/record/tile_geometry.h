// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <vector>

#include "core/capture_layout.h"

namespace sinkscope {

// How attention is cut: whole kv groups × rows of queries, at most 32 MiB of scores, heads split
// before rows; all heads of a row tile come before the next rows. Follows from the shapes alone,
// never from free memory, and is recorded.
struct TileGeometry {
  int heads = 0, rows = 0;
};
TileGeometry tile_geometry(int seq_len, int n_heads, int n_kv_heads);

// "T = 512: 9 heads x 512 rows" for the shortest and the longest run.
std::string describe_tiles(const std::vector<RunInput>& runs, int n_heads, int n_kv_heads);

}  // namespace sinkscope
