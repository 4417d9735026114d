// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/widgets/head_squares.h"

#include <QHelpEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "core/draw/colormap.h"
#include "views/theme.h"

namespace sinkscope {
namespace {

constexpr int kMargin = 3;  // room for the mark around the chosen one
constexpr int kLargest = 18, kSmallest = 8, kMostRows = 6;

}  // namespace

int SquareLayout::at(double x, double y, int n) const {
  const int step = side + gap;
  const int column = static_cast<int>(std::floor(x / step));
  const int row = static_cast<int>(std::floor(y / step));
  if (x < 0 || y < 0 || column >= columns || x - column * step >= side || y - row * step >= side)
    return -1;
  const int index = row * columns + column;
  return index < n ? index : -1;
}

SquareLayout square_layout(int width, int n) {
  SquareLayout layout;
  for (layout.side = kLargest;; --layout.side) {
    layout.gap = layout.side >= 14 ? 4 : 2;
    layout.columns = std::max(1, (width + layout.gap) / (layout.side + layout.gap));
    layout.rows = std::max(1, (n + layout.columns - 1) / layout.columns);
    if (layout.rows <= kMostRows || layout.side == kSmallest) return layout;
  }
}

HeadSquares::HeadSquares(QWidget* parent) : QWidget(parent) {
  QSizePolicy policy(QSizePolicy::Expanding, QSizePolicy::Minimum);
  policy.setHeightForWidth(true);
  setSizePolicy(policy);
  setAccessibleName(tr("Head"));
}

void HeadSquares::setScores(std::vector<double> scores) {
  const bool is_other_size = scores.size() != scores_.size();
  scores_ = std::move(scores);
  if (is_other_size) {
    setFixedHeight(heightForWidth(width()));
    updateGeometry();
  }
  update();
}

void HeadSquares::setHead(int head) {
  head_ = head;
  update();
}

QSize HeadSquares::sizeHint() const { return {220, heightForWidth(220)}; }

int HeadSquares::heightForWidth(int width) const {
  return n() == 0 ? 0 : square_layout(width - 2 * kMargin, n()).height() + 2 * kMargin;
}

void HeadSquares::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  const SquareLayout layout = square_layout(width() - 2 * kMargin, n());
  const Colormap colors = colormap("viridis");
  for (int i = 0; i < n(); ++i) {
    const QRect square(kMargin + layout.left(i), kMargin + layout.top(i), layout.side, layout.side);
    const double score = scores_[static_cast<std::size_t>(i)];
    const QColor color = std::isnan(score) ? palette().color(QPalette::AlternateBase)
                                           : QColor::fromRgba(color_at(score, colors));
    painter.fillRect(square, color);
    if (i != head_) continue;
    painter.setPen(QPen(mark_color(palette()), 2));
    painter.drawRect(QRectF(square).adjusted(-1.5, -1.5, 1.5, 1.5));
  }
}

void HeadSquares::mousePressEvent(QMouseEvent* event) {
  const QPointF p = event->position() - QPointF(kMargin, kMargin);
  const int head = square_layout(width() - 2 * kMargin, n()).at(p.x(), p.y(), n());
  if (head >= 0) emit headPicked(head);
}

bool HeadSquares::event(QEvent* event) {
  if (event->type() == QEvent::Resize) setFixedHeight(heightForWidth(width()));
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  auto* help = static_cast<QHelpEvent*>(event);
  const int head = square_layout(width() - 2 * kMargin, n())
                       .at(help->pos().x() - kMargin, help->pos().y() - kMargin, n());
  if (head < 0) {
    QToolTip::hideText();
    return true;
  }
  const double score = scores_[static_cast<std::size_t>(head)];
  QToolTip::showText(help->globalPos(),
                     std::isnan(score)
                         ? tr("head %1").arg(head)
                         : tr("head %1: sink score %2").arg(head).arg(score, 0, 'f', 3),
                     this);
  return true;
}

}  // namespace sinkscope
