// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>
#include <QWidget>
#include <optional>
#include <vector>

#include "core/draw/ticks.h"

class QPainter;

namespace sinkscope {

struct ScatterSeries {
  enum class Style { dots, line, dashed };
  QString name;  // in the legend; "" = not there
  Style style = Style::dots;
  int color = 0;  // as line_color takes it; −1 = muted
  std::vector<double> x, y;
};

// Points and curves over x = 0 … 1, y from 0 on. A click or the cursor finds the nearest dot.
class ScatterPlot : public QWidget {
  Q_OBJECT

 public:
  explicit ScatterPlot(QWidget* parent = nullptr);

  void setSeries(const QString& title, const QString& x_title, const QString& y_title,
                 std::vector<ScatterSeries> series);
  const std::vector<ScatterSeries>& series() const { return series_; }

  struct Dot {
    int series = 0, point = 0;
  };
  // The dot that is nearest to a place, within 12 pixels.
  std::optional<Dot> dotAt(const QPointF& place) const;
  QPointF pixelOf(double x, double y) const;
  QRectF plotArea() const;

  QSize sizeHint() const override { return {320, 220}; }
  QSize minimumSizeHint() const override { return {180, 130}; }

 signals:
  void hovered(int series, int point);  // −1, −1 = none
  void picked(int series, int point);

 protected:
  void paintEvent(QPaintEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void leaveEvent(QEvent* event) override;

 private:
  void paintFrame(QPainter& painter);
  void paintLegend(QPainter& painter) const;
  void paintSeries(QPainter& painter, const ScatterSeries& series) const;

  QString title_, x_title_, y_title_;
  std::vector<ScatterSeries> series_;
  ValueRange range_;  // of y
};

}  // namespace sinkscope
