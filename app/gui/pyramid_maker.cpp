// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/pyramid_maker.h"

#include <fmt/format.h>

#include <QPointer>

#include "views/heatmap/heatmap.h"

namespace sinkscope {

void PyramidMaker::serve(Heatmap& map) {
  if (!served_.insert(&map).second) return;
  connect(&map, &Heatmap::pyramidWanted, this,
          [this, &map](const Grid& grid, Reduction reduction) { make(map, grid, reduction); });
  connect(&map, &QObject::destroyed, this, [this, gone = &map] { served_.erase(gone); });
}

void PyramidMaker::make(Heatmap& map, const Grid& grid, Reduction reduction) {
  worker_.submit(
      fmt::format("{}", fmt::ptr(&map)),
      [map = QPointer<Heatmap>(&map), grid, reduction](const std::stop_token&) -> Worker::Deliver {
        Pyramid pyramid(grid, reduction);
        return [map, pyramid] {
          if (map != nullptr) map->setPyramid(pyramid);
        };
      },
      [](const std::string&) {});  // out of memory: the old picture stays
}

}  // namespace sinkscope
