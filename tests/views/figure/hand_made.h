// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/figure/figure.h"

namespace sinkscope::test {

// One map of 5 rows and 7 columns, value row · 7 + column, range 0 … 34, with title, labels, ticks
// at every second cell, a color bar, a box and a note.
Figure map_figure();

// A map of this size whose cells all differ from their neighbors; nothing but the map.
Figure plain_map(int rows, int columns);

// Two panels in a column: lines with a legend on a log axis, and bars.
Figure line_figure();

}  // namespace sinkscope::test
