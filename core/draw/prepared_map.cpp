// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/prepared_map.h"

namespace sinkscope {

PreparedMap prepare(const Grid& grid, Reduction reduction) {
  return {Pyramid(grid, reduction), RangeFinder({grid})};
}

}  // namespace sinkscope
