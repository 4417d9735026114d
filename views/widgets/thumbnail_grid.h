// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QImage>
#include <QWidget>
#include <memory>

#include "core/draw/value_range.h"
#include "core/snapshot/thumbnail_snapshot.h"

namespace sinkscope {

// Small maps of all heads of all layers: heads downwards, depth to the right. A tile keeps the
// largest probability of each of its pixels.
class ThumbnailGrid : public QWidget {
  Q_OBJECT

 public:
  explicit ThumbnailGrid(QWidget* parent = nullptr);

  void setSnapshot(std::shared_ptr<const ThumbnailSnapshot> snapshot);
  void setRange(const ValueRange& range);
  void setHead(int layer, int head);  // −1 = none

  // The tile of a layer's place (not its block index) and a head.
  QRectF tileRect(int layer_slot, int head) const;

 signals:
  void hovered(int layer_slot, int head);  // (−1, −1) outside
  void headPicked(int layer_slot, int head);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void leaveEvent(QEvent* event) override;

 private:
  struct Tiles {
    double width = 0, height = 0;  // of one tile with its gap
    double left = 0, top = 0;
  };
  Tiles tiles() const;
  QImage render(double ratio) const;
  QPoint slotAt(const QPointF& position) const;  // (layer slot, head), (−1, −1) = none
  void paintLabels(QPainter& painter, const Tiles& tiles) const;

  std::shared_ptr<const ThumbnailSnapshot> snapshot_;
  ValueRange range_;
  int layer_ = -1, head_ = -1;
  QImage image_;  // of the current size; null = to be made
};

}  // namespace sinkscope
