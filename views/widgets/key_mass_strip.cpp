// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/widgets/key_mass_strip.h"

#include <QMouseEvent>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "core/number_text.h"
#include "views/theme.h"

namespace sinkscope {
namespace {

constexpr double kTop = 5, kBottom = 5;

}  // namespace

KeyMassStrip::KeyMassStrip(QWidget* parent) : QWidget(parent) {
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
}

void KeyMassStrip::setValues(std::vector<double> values) {
  values_ = std::move(values);
  update();
}

void KeyMassStrip::setColumns(double left, double right, double first, double last) {
  left_ = left;
  right_ = right;
  first_ = first;
  last_ = last;
  update();
}

void KeyMassStrip::setMark(int column) {
  mark_ = column;
  update();
}

double KeyMassStrip::highest() const {
  double top = 0;
  const int n = static_cast<int>(values_.size());
  for (int c = std::max(0, static_cast<int>(first_));
       c < std::min(n, static_cast<int>(std::ceil(last_))); ++c)
    top = std::fmax(top, values_[static_cast<std::size_t>(c)]);
  return top;
}

QRectF KeyMassStrip::barRect(int column) const {
  if (column < 0 || column >= static_cast<int>(values_.size()) || last_ <= first_) return {};
  const double scale = (right_ - left_) / (last_ - first_);
  const double x0 = std::clamp(left_ + (column - first_) * scale, left_, right_);
  const double x1 = std::clamp(left_ + (column + 1 - first_) * scale, left_, right_);
  if (x1 <= x0) return {};
  const double top = highest();
  const double value = values_[static_cast<std::size_t>(column)];
  const double share = top > 0 && std::isfinite(value) ? value / top : 0;
  const double tall = share * (height() - kTop - kBottom);
  return {x0, height() - kBottom - tall, x1 - x0, tall};
}

void KeyMassStrip::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  if (last_ <= first_) return;
  const QRectF area(left_, kTop, right_ - left_, height() - kTop - kBottom);
  // Many bars in one pixel: the tallest of them is seen.
  std::vector<double> tallest(static_cast<std::size_t>(std::max(1.0, std::ceil(area.width()))),
                              0.0);
  const double scale = area.width() / (last_ - first_);
  painter.setPen(Qt::NoPen);
  for (int c = std::max(0, static_cast<int>(first_));
       c < std::min(static_cast<int>(values_.size()), static_cast<int>(std::ceil(last_))); ++c) {
    const QRectF bar = barRect(c);
    const QColor color = c == mark_ ? mark_color(palette()) : line_color(palette());
    if (scale >= 1 || c == mark_) {
      painter.fillRect(bar.width() > 3 ? bar.adjusted(0, 0, -1, 0) : bar, color);
      continue;
    }
    const auto pixel = std::min(tallest.size() - 1, static_cast<std::size_t>(bar.left() - left_));
    if (bar.height() <= tallest[pixel]) continue;
    tallest[pixel] = bar.height();
    painter.fillRect(QRectF(left_ + static_cast<double>(pixel), bar.top(), 1, bar.height()), color);
  }
  painter.setPen(palette().color(QPalette::Text));
  painter.drawLine(area.bottomLeft(), area.bottomRight());
  painter.setFont(caption_font(font()));
  painter.setPen(muted_color(palette()));
  painter.drawText(QRectF(0, kTop, left_ - 6, area.height()), Qt::AlignRight | Qt::AlignVCenter,
                   tr("key\nmass"));
  painter.drawText(QRectF(right_ - 130, kTop, 130, area.height()), Qt::AlignRight | Qt::AlignTop,
                   tr("highest %1").arg(QString::fromStdString(readable(highest()))));
}

void KeyMassStrip::mousePressEvent(QMouseEvent* event) {
  if (last_ <= first_ || right_ <= left_) return;
  const double column =
      first_ + (event->position().x() - left_) / (right_ - left_) * (last_ - first_);
  if (column >= first_ && column < last_ && column < static_cast<double>(values_.size()))
    emit columnPicked(static_cast<int>(column));
}

}  // namespace sinkscope
