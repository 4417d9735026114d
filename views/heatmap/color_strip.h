// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>
#include <vector>

#include "core/draw/colormap.h"
#include "core/draw/ticks.h"
#include "core/draw/value_range.h"

namespace sinkscope {

// The color axis: a vertical strip with ticks, a triangle at each end that has values beyond it,
// and the histogram of the cells beside it. The handles at the ends are dragged to another range.
class ColorStrip : public QWidget {
  Q_OBJECT

 public:
  explicit ColorStrip(QWidget* parent = nullptr);

  void setScale(const ValueRange& range, const Colormap& map, const RangeSummary& summary);
  // Draws a line at this value, that of the cell under the cursor; NaN takes it away.
  void setMarkedValue(double value);

  const ValueRange& range() const { return range_; }
  const std::vector<Tick>& ticks() const { return ticks_; }
  QRectF bar() const;       // of the colors, in pixels of this widget
  QRectF bin(int i) const;  // of one bar of the histogram, empty when it holds no cell
  QRectF handle(bool upper) const;
  QPolygonF beyond(bool upper) const;  // the triangle; drawn when there are values beyond

  QSize sizeHint() const override { return {220, 240}; }
  QSize minimumSizeHint() const override { return {150, 120}; }

 signals:
  void rangeDragged(double lo, double hi);  // while a handle moves
  void rangeDropped(double lo, double hi);  // when it is let go

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  enum class Grip { none, lower, upper };
  Grip gripAt(const QPointF& at) const;
  double pixelOf(double position) const;
  void placeTicks();

  ValueRange range_;
  Colormap map_;
  RangeSummary summary_;
  std::vector<Tick> ticks_;
  double marked_;
  double tick_width_ = 0;
  Grip grip_ = Grip::none;
  ValueRange grip_range_;  // when the handle was taken
  double grip_pixel_ = 0;
  std::pair<double, double> dragged_;
};

}  // namespace sinkscope
