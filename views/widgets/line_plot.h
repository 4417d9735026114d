// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <QWidget>
#include <vector>

#include "core/draw/ticks.h"

namespace sinkscope {

// One curve; x ascending, NaN breaks it.
struct PlotLine {
  QString name;
  std::vector<double> x, y;
};

// Curves over depth, small, with a shared y axis; the selected place marked.
class LinePlot : public QWidget {
  Q_OBJECT

 public:
  explicit LinePlot(QWidget* parent = nullptr);

  // Log scale where all values are positive and span more than two decades.
  void setLines(const QString& title, const QString& x_title, std::vector<PlotLine> lines);
  void setMark(double x);                                       // NaN = none
  void setLogAllowed(bool allowed) { log_allowed_ = allowed; }  // for the next lines

  // Where a value lies, in pixels of this widget.
  QPointF pixelOf(double x, double y) const;
  QRectF plotArea() const;
  bool isLog() const { return range_.scale == Scale::log; }
  const std::vector<Tick>& yTicks() const { return y_ticks_; }
  // One line for a tooltip: "18: max |x| 25,804, median |x| 2.1".
  QString readOutAt(double pixel_x) const;

  QSize sizeHint() const override { return {260, 170}; }
  QSize minimumSizeHint() const override { return {150, 120}; }

 signals:
  void picked(double x);  // the nearest place that a curve has

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  bool event(QEvent* event) override;

 private:
  double nearestX(double pixel_x) const;
  void paintLegend(QPainter& painter) const;

  QString title_, x_title_;
  std::vector<PlotLine> lines_;
  ValueRange range_;
  std::vector<Tick> y_ticks_;  // as last painted
  double x_lo_ = 0, x_hi_ = 1, mark_ = 0;
  bool has_values_ = false, log_allowed_ = true;
};

}  // namespace sinkscope
