// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/widgets/line_plot.h"

#include <QFontMetricsF>
#include <QHelpEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QPainterPath>
#include <QToolTip>
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/number_text.h"
#include "views/theme.h"

namespace sinkscope {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kLeft = 52, kRight = 10;
constexpr double kTickPixels = 26;  // room for one tick label along the y axis

ValueRange range_of(const std::vector<PlotLine>& lines, bool log_allowed, bool& has_values) {
  ValueRange range;
  range.lo = std::numeric_limits<double>::max();
  range.hi = std::numeric_limits<double>::lowest();
  double smallest_positive = std::numeric_limits<double>::max();
  for (const PlotLine& line : lines)
    for (const double y : line.y) {
      if (!std::isfinite(y)) continue;
      range.lo = std::min(range.lo, y);
      range.hi = std::max(range.hi, y);
      if (y > 0) smallest_positive = std::min(smallest_positive, y);
    }
  has_values = range.lo <= range.hi;
  if (!has_values) return {};
  if (log_allowed && range.lo > 0 && range.hi > 100 * range.lo) {
    range.scale = Scale::log;
    return range;
  }
  range.lo = std::min(range.lo, 0.0);
  if (range.hi <= range.lo) range.hi = range.lo + 1;
  return range;
}

}  // namespace

LinePlot::LinePlot(QWidget* parent) : QWidget(parent), mark_(kNaN) {
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
}

void LinePlot::setLines(const QString& title, const QString& x_title, std::vector<PlotLine> lines) {
  title_ = title;
  x_title_ = x_title;
  lines_ = std::move(lines);
  range_ = range_of(lines_, log_allowed_, has_values_);
  x_lo_ = std::numeric_limits<double>::max();
  x_hi_ = std::numeric_limits<double>::lowest();
  for (const PlotLine& line : lines_)
    for (const double x : line.x) {
      x_lo_ = std::min(x_lo_, x);
      x_hi_ = std::max(x_hi_, x);
    }
  if (x_lo_ > x_hi_) {
    x_lo_ = 0;
    x_hi_ = 1;
  }
  if (x_lo_ == x_hi_) x_hi_ = x_lo_ + 1;
  update();
}

void LinePlot::setMark(double x) {
  mark_ = x;
  update();
}

QRectF LinePlot::plotArea() const {
  const double line = QFontMetricsF(font()).height();
  const double small = QFontMetricsF(caption_font(font())).height();
  const double legend = lines_.size() > 1 ? small + 2 : 0;
  return {kLeft, line + 8 + legend, std::max(10.0, width() - kLeft - kRight),
          std::max(10.0, height() - line - 8 - legend - 2 * small - 8)};
}

QPointF LinePlot::pixelOf(double x, double y) const {
  const QRectF area = plotArea();
  return {area.left() + (x - x_lo_) / (x_hi_ - x_lo_) * area.width(),
          area.bottom() - normalized(y, range_) * area.height()};
}

double LinePlot::nearestX(double pixel_x) const {
  double nearest = kNaN, distance = std::numeric_limits<double>::max();
  for (const PlotLine& line : lines_)
    for (const double x : line.x) {
      const double d = std::abs(pixelOf(x, range_.lo).x() - pixel_x);
      if (d < distance) {
        distance = d;
        nearest = x;
      }
    }
  return nearest;
}

QString LinePlot::readOutAt(double pixel_x) const {
  const double x = nearestX(pixel_x);
  if (std::isnan(x)) return {};
  QStringList parts;
  for (const PlotLine& line : lines_) {
    const auto at = std::find(line.x.begin(), line.x.end(), x);
    if (at == line.x.end()) continue;
    const double y = line.y[static_cast<std::size_t>(at - line.x.begin())];
    parts += QStringLiteral("%1 %2").arg(line.name, QString::fromStdString(readable(y)));
  }
  return QStringLiteral("%1 %2: %3").arg(x_title_).arg(x).arg(parts.join(QStringLiteral(", ")));
}

void LinePlot::paintLegend(QPainter& painter) const {
  const QFontMetricsF metrics(painter.font());
  double x = kLeft;
  const double y = plotArea().top() - metrics.height() / 2 - 4;
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    painter.setPen(QPen(line_color(palette(), static_cast<int>(i)), 2));
    painter.drawLine(QPointF(x, y), QPointF(x + 14, y));
    painter.setPen(palette().color(QPalette::Text));
    const double width = metrics.horizontalAdvance(lines_[i].name);
    painter.drawText(QRectF(x + 18, y - metrics.height() / 2, width + 2, metrics.height()),
                     Qt::AlignVCenter | Qt::AlignLeft, lines_[i].name);
    x += 18 + width + 14;
  }
}

void LinePlot::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  const QRectF area = plotArea();
  painter.setPen(palette().color(QPalette::Text));
  painter.drawText(QRectF(4, 2, width() - 8, QFontMetricsF(font()).height() + 2),
                   Qt::AlignLeft | Qt::AlignVCenter,
                   painter.fontMetrics().elidedText(title_, Qt::ElideRight, width() - 8));
  painter.setFont(caption_font(font()));
  if (lines_.size() > 1) paintLegend(painter);
  if (!has_values_) {
    painter.setPen(muted_color(palette()));
    painter.drawText(area, Qt::AlignCenter, tr("not recorded"));
    return;
  }
  const QFontMetricsF metrics(painter.font());
  y_ticks_ = value_ticks(range_, std::max(2, static_cast<int>(area.height() / kTickPixels)));
  for (const Tick& tick : y_ticks_) {
    const double y = area.bottom() - tick.position * area.height();
    painter.setPen(QPen(palette().color(QPalette::Button), 1));
    painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y));
    painter.setPen(palette().color(QPalette::Text));
    painter.drawText(QRectF(0, y - metrics.height() / 2, kLeft - 6, metrics.height()),
                     Qt::AlignRight | Qt::AlignVCenter, QString::fromStdString(tick.label));
  }
  for (const double x :
       nice_values(x_lo_, x_hi_, std::max(2, static_cast<int>(area.width() / 45)))) {
    const double at = pixelOf(x, range_.lo).x();
    painter.drawLine(QPointF(at, area.bottom()), QPointF(at, area.bottom() + 3));
    painter.drawText(QRectF(at - 22, area.bottom() + 3, 44, metrics.height()), Qt::AlignCenter,
                     QString::number(x));
  }
  painter.drawText(
      QRectF(area.left(), area.bottom() + 3 + metrics.height(), area.width(), metrics.height()),
      Qt::AlignCenter, x_title_);
  painter.setPen(palette().color(QPalette::Text));
  painter.drawLine(area.topLeft(), area.bottomLeft());
  painter.drawLine(area.bottomLeft(), area.bottomRight());
  if (std::isfinite(mark_) && mark_ >= x_lo_ && mark_ <= x_hi_) {
    painter.setPen(QPen(mark_color(palette()), 1.5));
    const double x = pixelOf(mark_, range_.lo).x();
    painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()));
  }
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    QPainterPath path;
    bool is_down = false;
    for (std::size_t p = 0; p < lines_[i].x.size(); ++p) {
      if (!std::isfinite(lines_[i].y[p])) {
        is_down = false;
        continue;
      }
      const QPointF point = pixelOf(lines_[i].x[p], lines_[i].y[p]);
      if (is_down)
        path.lineTo(point);
      else
        path.moveTo(point);
      is_down = true;
    }
    painter.setPen(QPen(line_color(palette(), static_cast<int>(i)), 2));
    painter.drawPath(path);
  }
}

void LinePlot::mousePressEvent(QMouseEvent* event) {
  const double x = nearestX(event->position().x());
  if (!std::isnan(x)) emit picked(x);
}

bool LinePlot::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  auto* help = static_cast<QHelpEvent*>(event);
  QToolTip::showText(help->globalPos(), readOutAt(help->pos().x()), this);
  return true;
}

}  // namespace sinkscope
