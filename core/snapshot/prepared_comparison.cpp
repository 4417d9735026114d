// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/snapshot/prepared_comparison.h"

#include "core/draw/grid_rows.h"

namespace sinkscope {
namespace {

bool has_negative(const Grid& grid) {
  bool found = false;
  for_each_row(grid, [&](int, int, const auto* x, int n) {
    int below = 0;
    for (int i = 0; i < n; ++i) below += x[i] < 0;
    found = found || below > 0;
  });
  return found;
}

}  // namespace

PreparedComparison prepare(const CompareSnapshot& snapshot) {
  PreparedComparison out;
  std::vector<Grid> sides, differences;
  for (const CompareSide& side : snapshot.sides) {
    const bool is_gain = side.kind == MapKind::norms;
    out.maps.push_back(prepare(side.map, is_gain ? Reduction::from_one : Reduction::max_abs));
    out.is_signed = out.is_signed || (side.kind == MapKind::residual && has_negative(side.map));
    sides.push_back(side.map);
  }
  for (const Difference& difference : snapshot.differences) {
    out.maps.push_back(prepare(difference.map));
    differences.push_back(difference.map);
  }
  out.sides = RangeFinder(std::move(sides));
  out.differences =
      differences.size() == 1 ? out.maps.back().ranges : RangeFinder(std::move(differences));
  return out;
}

}  // namespace sinkscope
