// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/widgets/bar_list.h"

#include <QPainter>
#include <cmath>

#include "core/number_text.h"
#include "views/theme.h"

namespace sinkscope {
namespace {

constexpr double kValueWidth = 58;  // room for a number at either end

QString number(double value) {
  return std::isnan(value)
             ? QStringLiteral("–")
             : QStringLiteral("%1%2").arg(value < 0 ? QStringLiteral("−") : QStringLiteral("+"),
                                          QString::number(std::abs(value), 'f', 3));
}

}  // namespace

BarList::BarList(QWidget* parent) : QWidget(parent) {
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
}

void BarList::setBars(const QString& title, const QStringList& names, std::vector<double> values,
                      double low, double high) {
  title_ = title;
  names_ = names;
  values_ = std::move(values);
  low_ = std::min(0.0, low);
  high_ = std::max(low_ + 1e-9, high);
  updateGeometry();
  update();
}

double BarList::lineHeight() const { return QFontMetricsF(caption_font(font())).height() + 2; }

double BarList::nameWidth() const {
  const QFontMetricsF metrics(caption_font(font()));
  double width = 0;
  for (const QString& name : names_) width = std::max(width, metrics.horizontalAdvance(name));
  return width + 8;
}

QSize BarList::sizeHint() const {
  const double title = title_.isEmpty() ? 0 : QFontMetricsF(font()).height() + 4;
  return {320, static_cast<int>(
                   std::ceil(title + lineHeight() * static_cast<double>(names_.size()) + 6))};
}

QRectF BarList::barRect(int row) const {
  const double value = values_[static_cast<std::size_t>(row)];
  if (std::isnan(value)) return {};
  // Numbers stand behind the bars: on the left as well where some are negative.
  const double before = low_ < 0 ? kValueWidth : 0;
  const double left = nameWidth() + before;
  const double room = std::max(20.0, width() - left - kValueWidth);
  const auto place = [&](double v) {
    return left + (std::clamp(v, low_, high_) - low_) / (high_ - low_) * room;
  };
  const double title = title_.isEmpty() ? 0 : QFontMetricsF(font()).height() + 4;
  const double from = place(std::min(0.0, value)), to = place(std::max(0.0, value));
  return {from, title + row * lineHeight() + 2, std::max(1.0, to - from), lineHeight() - 4};
}

void BarList::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setPen(palette().color(QPalette::Text));
  const double title = title_.isEmpty() ? 0 : QFontMetricsF(font()).height() + 4;
  painter.drawText(QRectF(2, 0, width() - 4, title), Qt::AlignLeft | Qt::AlignVCenter,
                   painter.fontMetrics().elidedText(title_, Qt::ElideRight, width() - 4));
  painter.setFont(caption_font(font()));
  for (int row = 0; row < names_.size(); ++row) {
    const double y = title + row * lineHeight();
    painter.setPen(palette().color(QPalette::Text));
    painter.drawText(QRectF(2, y, nameWidth() - 6, lineHeight()), Qt::AlignLeft | Qt::AlignVCenter,
                     names_[row]);
    const double value = values_[static_cast<std::size_t>(row)];
    const QRectF bar = barRect(row);
    if (!bar.isEmpty()) painter.fillRect(bar, line_color(palette(), value < 0 ? 1 : 0));
    const bool on_left = value < 0;
    const double at = bar.isEmpty() ? nameWidth()
                      : on_left     ? bar.left() - kValueWidth
                                    : bar.right();
    painter.drawText(QRectF(at + (on_left ? -4 : 4), y, kValueWidth, lineHeight()),
                     (on_left ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter, number(value));
  }
}

}  // namespace sinkscope
