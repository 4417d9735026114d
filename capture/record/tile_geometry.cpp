// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/record/tile_geometry.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <set>

namespace sinkscope {
namespace {

constexpr std::int64_t kTileBytes = std::int64_t{32} << 20;

}  // namespace

TileGeometry tile_geometry(int seq_len, int n_heads, int n_kv_heads) {
  const int group = n_heads / n_kv_heads;
  const auto bytes = [&](int heads, int rows) { return std::int64_t{4} * heads * rows * seq_len; };
  TileGeometry tile{group, seq_len};
  for (int groups = n_kv_heads; groups > 1; --groups) {
    if (bytes(groups * group, seq_len) <= kTileBytes) {
      tile.heads = groups * group;
      return tile;
    }
  }
  if (bytes(group, seq_len) <= kTileBytes) return tile;
  // Rows in whole chunks of a recorded map where that fits, else in powers of two.
  const int chunk = pattern_chunk_side(seq_len, n_heads);
  const std::int64_t fit = std::max<std::int64_t>(1, kTileBytes / bytes(group, 1));
  if (fit >= chunk) {
    tile.rows = static_cast<int>(fit / chunk * chunk);
  } else {
    tile.rows = 1;
    while (tile.rows * 2 <= fit) tile.rows *= 2;
  }
  return tile;
}

std::string describe_tiles(const std::vector<RunInput>& runs, int n_heads, int n_kv_heads) {
  std::set<int> lengths;
  for (const RunInput& run : runs) lengths.insert(run.seq_len());
  if (lengths.size() > 2) lengths = {*lengths.begin(), *lengths.rbegin()};
  std::string text;
  for (int seq_len : lengths) {
    const TileGeometry tile = tile_geometry(seq_len, n_heads, n_kv_heads);
    text += fmt::format("{}T = {}: {} heads x {} rows", text.empty() ? "" : "; ", seq_len,
                        tile.heads, tile.rows);
  }
  return text;
}

}  // namespace sinkscope
