// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/widgets/layer_slider.h"

#include <QFontMetricsF>
#include <QMouseEvent>
#include <QPainter>
#include <QPainterPath>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

#include "views/theme.h"

namespace sinkscope {
namespace {

constexpr double kMargin = 4;

struct LineRange {
  double lo = 0, hi = 1;
  bool is_log = false;
};

LineRange range_of(const std::vector<double>& values) {
  LineRange range{HUGE_VAL, -HUGE_VAL, false};
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    range.lo = std::min(range.lo, value);
    range.hi = std::max(range.hi, value);
  }
  if (range.lo > range.hi) return {};
  range.is_log = range.lo > 0 && range.hi > 100 * range.lo;
  if (range.is_log) {
    range.lo = std::log10(range.lo);
    range.hi = std::log10(range.hi);
  }
  if (range.lo == range.hi) range.hi = range.lo + 1;
  return range;
}

}  // namespace

int cell_at(double x, double width, int n) {
  if (n <= 0 || width <= 0) return -1;
  return std::clamp(static_cast<int>(std::floor(x / width * n)), 0, n - 1);
}

LayerSlider::LayerSlider(QWidget* parent) : QWidget(parent) {
  setMouseTracking(false);
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  setAccessibleName(tr("Layer"));
}

void LayerSlider::setLine(std::vector<double> values, const QString& caption) {
  values_ = std::move(values);
  caption_ = caption;
  update();
}

void LayerSlider::setLayers(int n_layers) {
  n_layers_ = n_layers;
  update();
}

void LayerSlider::setLayer(int layer) {
  layer_ = layer;
  update();
}

QRectF LayerSlider::strip() const {
  const double caption = QFontMetricsF(caption_font(font())).height();
  return QRectF(rect()).adjusted(kMargin, kMargin, -kMargin, -kMargin - caption);
}

void LayerSlider::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  const QRectF area = strip();
  painter.fillRect(area, palette().color(QPalette::AlternateBase));
  if (n_layers_ > 0 && layer_ >= 0) {
    const double cell = area.width() / n_layers_;
    QRectF marker(area.left() + layer_ * cell, area.top(), std::max(cell, 2.0), area.height());
    QColor fill = mark_color(palette());
    fill.setAlpha(90);
    painter.fillRect(marker, fill);
    painter.fillRect(QRectF(marker.center().x() - 1, area.top(), 2, area.height()),
                     mark_color(palette()));
  }
  const LineRange range = range_of(values_);
  QPainterPath path;
  bool is_down = false;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const double value = range.is_log ? std::log10(values_[i]) : values_[i];
    if (!std::isfinite(value)) {
      is_down = false;
      continue;
    }
    const double x = area.left() + (static_cast<double>(i) + 0.5) * area.width() /
                                       static_cast<double>(values_.size());
    const double y =
        area.bottom() - 3 - (value - range.lo) / (range.hi - range.lo) * (area.height() - 6);
    if (is_down)
      path.lineTo(x, y);
    else
      path.moveTo(x, y);
    is_down = true;
  }
  painter.setPen(QPen(line_color(palette()), 1.6));
  painter.drawPath(path);
  painter.setFont(caption_font(font()));
  painter.setPen(muted_color(palette()));
  const QString text = range.is_log ? tr("%1 (log)").arg(caption_) : caption_;
  const QRectF below(area.left(), area.bottom(), area.width(), height() - area.bottom());
  painter.drawText(
      below, Qt::AlignLeft | Qt::AlignVCenter,
      painter.fontMetrics().elidedText(text, Qt::ElideRight, static_cast<int>(below.width())));
}

void LayerSlider::pickAt(const QPointF& position) {
  const QRectF area = strip();
  const int layer = cell_at(position.x() - area.left(), area.width(), n_layers_);
  if (layer >= 0 && layer != layer_) emit layerPicked(layer);
}

void LayerSlider::mousePressEvent(QMouseEvent* event) { pickAt(event->position()); }

void LayerSlider::mouseMoveEvent(QMouseEvent* event) {
  if (event->buttons() & Qt::LeftButton) pickAt(event->position());
}

void LayerSlider::wheelEvent(QWheelEvent* event) {
  const int step = event->angleDelta().y() > 0 ? -1 : 1;
  const int layer = std::clamp(layer_ + step, 0, std::max(0, n_layers_ - 1));
  if (n_layers_ > 0 && layer != layer_) emit layerPicked(layer);
  event->accept();
}

}  // namespace sinkscope
