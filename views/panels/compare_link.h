// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>
#include <vector>

#include "core/snapshot/compare_snapshot.h"

namespace sinkscope {

// One axis of a map that is linked to others: the position, layer or dimension behind each cell.
using CellNumbers = std::vector<int>;

// Where a place on one axis (in cells, cell i being [i, i+1)) lies on another one that shows the
// same numbers: between equal lists the same place, between ascending ones by their numbers. The
// result may lie outside of the other axis. nullopt when the lists are neither.
std::optional<double> linked_place(double place, const CellNumbers& from, const CellNumbers& to);

// What the rows or columns of maps of this kind are: "query", "layer".
const char* axis_title(MapKind kind, bool rows);

// The cell of `to` that shows the number of cell `i` of `from`; −1 when there is none.
int linked_cell(int i, const CellNumbers& from, const CellNumbers& to);

}  // namespace sinkscope
