// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/widgets/scatter_plot.h"

#include <QMouseEvent>
#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <cmath>

#include "core/draw/value_range.h"
#include "views/theme.h"

namespace sinkscope {
namespace {

constexpr double kLeft = 46, kRight = 10, kTickPixels = 34, kReach = 12;

QColor color_of(const QPalette& palette, int color) {
  return color < 0 ? muted_color(palette) : line_color(palette, color);
}

}  // namespace

ScatterPlot::ScatterPlot(QWidget* parent) : QWidget(parent) {
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
  setMouseTracking(true);
}

void ScatterPlot::setSeries(const QString& title, const QString& x_title, const QString& y_title,
                            std::vector<ScatterSeries> series) {
  title_ = title;
  x_title_ = x_title;
  y_title_ = y_title;
  series_ = std::move(series);
  double most = 0;
  for (const ScatterSeries& one : series_)
    for (const double y : one.y)
      if (std::isfinite(y)) most = std::max(most, y);
  range_ = {};
  range_.lo = 0;
  range_.hi = most > 0 ? most * 1.05 : 1;
  update();
}

QRectF ScatterPlot::plotArea() const {
  const double line = QFontMetricsF(font()).height();
  const double small = QFontMetricsF(caption_font(font())).height();
  const double top = line + 8 + small + 2;  // title and legend
  return {kLeft, top, std::max(10.0, width() - kLeft - kRight),
          std::max(10.0, height() - top - 2 * small - 8)};
}

QPointF ScatterPlot::pixelOf(double x, double y) const {
  const QRectF area = plotArea();
  return {area.left() + x * area.width(), area.bottom() - normalized(y, range_) * area.height()};
}

std::optional<ScatterPlot::Dot> ScatterPlot::dotAt(const QPointF& place) const {
  std::optional<Dot> nearest;
  double least = kReach * kReach;
  for (std::size_t s = 0; s < series_.size(); ++s) {
    if (series_[s].style != ScatterSeries::Style::dots) continue;
    for (std::size_t i = 0; i < series_[s].x.size(); ++i) {
      const QPointF away = pixelOf(series_[s].x[i], series_[s].y[i]) - place;
      const double distance = away.x() * away.x() + away.y() * away.y();
      if (!(distance < least)) continue;
      least = distance;
      nearest = {static_cast<int>(s), static_cast<int>(i)};
    }
  }
  return nearest;
}

void ScatterPlot::paintLegend(QPainter& painter) const {
  const QFontMetricsF metrics(painter.font());
  double x = kLeft;
  const double y = plotArea().top() - metrics.height() / 2 - 4;
  for (const ScatterSeries& one : series_) {
    if (one.name.isEmpty()) continue;
    const QColor color = color_of(palette(), one.color);
    if (one.style == ScatterSeries::Style::dots) {
      painter.setPen(QPen(color, 4, Qt::SolidLine, Qt::RoundCap));
      painter.drawPoint(QPointF(x + 5, y));
    } else {
      painter.setPen(QPen(
          color, 1.5, one.style == ScatterSeries::Style::dashed ? Qt::DashLine : Qt::SolidLine));
      painter.drawLine(QPointF(x, y), QPointF(x + 12, y));
    }
    painter.setPen(palette().color(QPalette::Text));
    const double text_width = metrics.horizontalAdvance(one.name);
    painter.drawText(QRectF(x + 15, y - metrics.height() / 2, text_width + 2, metrics.height()),
                     Qt::AlignVCenter | Qt::AlignLeft, one.name);
    x += 15 + text_width + 10;
  }
}

void ScatterPlot::paintFrame(QPainter& painter) {
  const QRectF area = plotArea();
  const QFontMetricsF metrics(painter.font());
  for (const Tick& tick :
       value_ticks(range_, std::max(2, static_cast<int>(area.height() / kTickPixels)))) {
    const double y = area.bottom() - tick.position * area.height();
    painter.setPen(QPen(palette().color(QPalette::Button), 1));
    painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y));
    painter.setPen(palette().color(QPalette::Text));
    painter.drawText(QRectF(0, y - metrics.height() / 2, kLeft - 6, metrics.height()),
                     Qt::AlignRight | Qt::AlignVCenter, QString::fromStdString(tick.label));
  }
  for (int i = 0; i <= 5; ++i) {
    const double x = area.left() + i / 5.0 * area.width();
    painter.drawLine(QPointF(x, area.bottom()), QPointF(x, area.bottom() + 3));
    painter.drawText(QRectF(x - 20, area.bottom() + 3, 40, metrics.height()), Qt::AlignCenter,
                     QString::number(i / 5.0));
  }
  painter.drawText(
      QRectF(area.left(), area.bottom() + 3 + metrics.height(), area.width(), metrics.height()),
      Qt::AlignCenter, x_title_);
  painter.drawLine(area.topLeft(), area.bottomLeft());
  painter.drawLine(area.bottomLeft(), area.bottomRight());
}

void ScatterPlot::paintSeries(QPainter& painter, const ScatterSeries& one) const {
  const QColor color = color_of(palette(), one.color);
  if (one.style == ScatterSeries::Style::dots) {
    QVector<QPointF> points;
    for (std::size_t i = 0; i < one.x.size(); ++i)
      if (std::isfinite(one.x[i]) && std::isfinite(one.y[i]))
        points.append(pixelOf(one.x[i], one.y[i]));
    painter.setPen(QPen(color, 3.5, Qt::SolidLine, Qt::RoundCap));
    painter.drawPoints(points.constData(), static_cast<int>(points.size()));
    return;
  }
  QPainterPath path;
  for (std::size_t i = 0; i < one.x.size(); ++i) {
    const QPointF point = pixelOf(one.x[i], one.y[i]);
    if (i == 0)
      path.moveTo(point);
    else
      path.lineTo(point);
  }
  const bool dashed = one.style == ScatterSeries::Style::dashed;
  painter.setPen(QPen(color, 1.5, dashed ? Qt::DashLine : Qt::SolidLine));
  painter.drawPath(path);
}

void ScatterPlot::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(palette().color(QPalette::Text));
  const QString title = y_title_.isEmpty() ? title_ : title_ + QStringLiteral(": ") + y_title_;
  painter.drawText(QRectF(4, 2, width() - 8, QFontMetricsF(font()).height() + 2),
                   Qt::AlignLeft | Qt::AlignVCenter,
                   painter.fontMetrics().elidedText(title, Qt::ElideRight, width() - 8));
  painter.setFont(caption_font(font()));
  if (series_.empty()) {
    painter.setPen(muted_color(palette()));
    painter.drawText(plotArea(), Qt::AlignCenter, tr("not recorded"));
    return;
  }
  paintLegend(painter);
  paintFrame(painter);
  for (const ScatterSeries& one : series_) paintSeries(painter, one);
}

void ScatterPlot::mouseMoveEvent(QMouseEvent* event) {
  const auto dot = dotAt(event->position());
  emit hovered(dot ? dot->series : -1, dot ? dot->point : -1);
}

void ScatterPlot::mousePressEvent(QMouseEvent* event) {
  const auto dot = dotAt(event->position());
  if (dot) emit picked(dot->series, dot->point);
}

void ScatterPlot::leaveEvent(QEvent*) { emit hovered(-1, -1); }

}  // namespace sinkscope
