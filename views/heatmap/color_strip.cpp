// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/heatmap/color_strip.h"

#include <QEvent>
#include <QMouseEvent>
#include <QPainter>
#include <algorithm>
#include <cmath>
#include <limits>

namespace sinkscope {

namespace {

constexpr double kBarWidth = 24, kTriangle = 12, kHandle = 7, kTickLength = 4, kGap = 4;
// How far a handle may be dragged beyond the present range, in lengths of the strip.
constexpr double kReach = 1;

}  // namespace

ColorStrip::ColorStrip(QWidget* parent)
    : QWidget(parent),
      map_(colormap("viridis")),
      marked_(std::numeric_limits<double>::quiet_NaN()) {
  setMouseTracking(true);
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::MinimumExpanding);
  placeTicks();
}

void ColorStrip::setScale(const ValueRange& range, const Colormap& map,
                          const RangeSummary& summary) {
  range_ = range;
  map_ = map;
  summary_ = summary;
  placeTicks();
  update();
}

void ColorStrip::setMarkedValue(double value) {
  marked_ = value;
  update();
}

QRectF ColorStrip::bar() const {
  const double margin = kTriangle + kGap;
  return {kHandle + 2, margin, kBarWidth, std::max(10.0, height() - 2 * margin)};
}

double ColorStrip::pixelOf(double position) const {
  return bar().bottom() - position * bar().height();
}

QRectF ColorStrip::bin(int i) const {
  const auto n = static_cast<double>(summary_.histogram.size());
  if (i < 0 || i >= static_cast<int>(n) || summary_.histogram[i] == 0) return {};
  const std::int64_t most = *std::max_element(summary_.histogram.begin(), summary_.histogram.end());
  const double left = bar().right() + kTickLength + kGap + tick_width_ + 8;
  const double room = std::max(8.0, width() - left - 4);
  // Counts span decades: their logarithm, with room for a single cell to be seen.
  const double share = (1 + std::log10(static_cast<double>(summary_.histogram[i]))) /
                       (1 + std::log10(static_cast<double>(most)));
  const double top = pixelOf((i + 1) / n);
  return {left, top, room * share, pixelOf(i / n) - top};
}

QRectF ColorStrip::handle(bool upper) const {
  const double y = upper ? bar().top() : bar().bottom();
  return {bar().left() - kHandle - 1, y - kHandle, kHandle, 2 * kHandle};
}

QPolygonF ColorStrip::beyond(bool upper) const {
  const QRectF strip = bar();
  const double base = upper ? strip.top() : strip.bottom();
  return QPolygonF({{strip.left(), base},
                    {strip.right(), base},
                    {strip.center().x(), base + (upper ? -kTriangle : kTriangle)}});
}

void ColorStrip::placeTicks() {
  const double spacing = 1.6 * fontMetrics().height();
  ticks_ = value_ticks(range_, std::clamp(static_cast<int>(bar().height() / spacing), 2, 11));
  tick_width_ = 0;
  for (const Tick& tick : ticks_)
    tick_width_ = std::max<double>(
        tick_width_, fontMetrics().horizontalAdvance(QString::fromStdString(tick.label)));
}

void ColorStrip::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing, false);
  const QRectF strip = bar();
  for (double y = std::floor(strip.top()); y < strip.bottom(); ++y)
    painter.fillRect(QRectF(strip.left(), y, strip.width(), 1),
                     QColor::fromRgb(color_at((strip.bottom() - y - 0.5) / strip.height(), map_)));
  const QColor text = palette().color(QPalette::Text);
  painter.setPen(text);
  painter.setBrush(Qt::NoBrush);
  painter.drawRect(strip);
  for (const bool upper : {true, false})
    if ((upper ? summary_.above : summary_.below) > 0) {
      painter.setBrush(QColor::fromRgb(upper ? map_.over : map_.under));
      painter.drawPolygon(beyond(upper));
    }

  painter.setBrush(Qt::NoBrush);
  for (const Tick& tick : ticks_) {
    const double y = pixelOf(tick.position), x = strip.right() + kTickLength;
    painter.drawLine(QPointF(strip.right(), y), QPointF(x, y));
    painter.drawText(QRectF(x + kGap, y - 20, tick_width_ + 2, 40),
                     Qt::AlignVCenter | Qt::AlignLeft, QString::fromStdString(tick.label));
  }
  painter.setPen(Qt::NoPen);
  QColor bars = palette().color(QPalette::Highlight);
  bars.setAlpha(110);
  for (int i = 0; i < static_cast<int>(summary_.histogram.size()); ++i)
    painter.fillRect(bin(i), bars);

  painter.setRenderHint(QPainter::Antialiasing);
  painter.setBrush(palette().color(QPalette::Highlight));
  for (const bool upper : {true, false}) {
    const QRectF grip = handle(upper);
    painter.drawPolygon(
        QPolygonF({grip.topLeft(), grip.bottomLeft(), QPointF(grip.right(), grip.center().y())}));
  }
  if (std::isfinite(marked_)) {
    const double y = pixelOf(std::clamp(normalized(marked_, range_), 0.0, 1.0));
    painter.setPen(QPen(QColor(217, 95, 2), 2));
    painter.drawLine(QPointF(strip.left(), y), QPointF(width() - 4, y));
  }
}

ColorStrip::Grip ColorStrip::gripAt(const QPointF& at) const {
  const auto near = [&](bool upper) {
    return handle(upper).adjusted(-4, -4, kBarWidth, 4).contains(at);
  };
  if (near(true)) return Grip::upper;
  return near(false) ? Grip::lower : Grip::none;
}

void ColorStrip::mousePressEvent(QMouseEvent* event) {
  grip_ = event->button() == Qt::LeftButton ? gripAt(event->position()) : Grip::none;
  grip_range_ = range_;
  grip_pixel_ = event->position().y();
  dragged_ = {range_.lo, range_.hi};
}

// The handle moves along the axis as it was when it was taken, so that it follows the mouse while
// the strip is redrawn with the new range.
void ColorStrip::mouseMoveEvent(QMouseEvent* event) {
  if (grip_ == Grip::none) {
    const bool over = gripAt(event->position()) != Grip::none;
    setCursor(over ? Qt::SizeVerCursor : Qt::ArrowCursor);
    return;
  }
  const double moved = (grip_pixel_ - event->position().y()) / bar().height();
  const bool upper = grip_ == Grip::upper;
  const double inner = grip_range_.center ? 0.48 : 0.98;  // a diverging range keeps its center
  const double position =
      upper ? std::clamp(1 + moved, 1 - inner, 1 + kReach) : std::clamp(moved, -kReach, inner);
  const double value = value_at(position, grip_range_),
               mirrored = value_at(1 - position, grip_range_);
  if (!std::isfinite(value) || !std::isfinite(mirrored)) return;
  (upper ? dragged_.second : dragged_.first) = value;
  if (grip_range_.center) (upper ? dragged_.first : dragged_.second) = mirrored;
  if (dragged_.first < dragged_.second) emit rangeDragged(dragged_.first, dragged_.second);
}

void ColorStrip::mouseReleaseEvent(QMouseEvent*) {
  if (grip_ != Grip::none && dragged_ != std::pair(grip_range_.lo, grip_range_.hi))
    emit rangeDropped(dragged_.first, dragged_.second);
  grip_ = Grip::none;
}

void ColorStrip::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  placeTicks();
}

void ColorStrip::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::FontChange) placeTicks();
  update();
}

}  // namespace sinkscope
