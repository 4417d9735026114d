// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <set>

#include "app/gui/worker.h"
#include "core/draw/pyramid.h"

namespace sinkscope {

class Heatmap;

// Makes the pyramids that heatmaps ask for, on a thread of its own. A map's newest request wins.
class PyramidMaker : public QObject {
  Q_OBJECT

 public:
  explicit PyramidMaker(QObject* parent = nullptr) : QObject(parent), worker_(*this) {}

  // From now on; a map may go before its pyramid is there. Serving it twice changes nothing.
  void serve(Heatmap& map);

 private:
  void make(Heatmap& map, const Grid& grid, Reduction reduction);

  std::set<const Heatmap*> served_;
  Worker worker_;  // last: joined first
};

}  // namespace sinkscope
