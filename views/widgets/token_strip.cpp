// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/widgets/token_strip.h"

#include <QFontMetricsF>
#include <QHelpEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QScrollBar>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "views/theme.h"

namespace sinkscope {
namespace {

constexpr double kMargin = 6, kPadding = 2.5, kLineGap = 5;
const QString kSpaceMark = QStringLiteral("·");
const QString kBreakMark = QStringLiteral("↵");

}  // namespace

TokenStrip::TokenStrip(QWidget* parent) : QAbstractScrollArea(parent) {
  setFrameShape(QFrame::NoFrame);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  setAccessibleName(tr("Tokens"));
}

void TokenStrip::setTokens(const std::vector<std::string>& labels, const std::vector<int>& ids) {
  texts_.clear();
  has_space_.clear();
  breaks_line_.clear();
  for (std::size_t t = 0; t < labels.size(); ++t) {
    QString text = QString::fromStdString(labels[t]);
    const bool has_space = text.size() > 1 && text.startsWith(kSpaceMark);
    if (has_space) text.remove(0, 1);
    if (text.isEmpty()) text = QString::number(t < ids.size() ? ids[t] : static_cast<int>(t));
    breaks_line_.push_back(text.endsWith(kBreakMark));
    has_space_.push_back(has_space || labels[t].empty());
    texts_.push_back(std::move(text));
  }
  token_ = -1;
  shades_.clear();
  verticalScrollBar()->setValue(0);
  layOut();
}

void TokenStrip::setShades(std::vector<double> shades) {
  shades_ = std::move(shades);
  viewport()->update();
}

void TokenStrip::setToken(int token) {
  token_ = token < count() ? token : -1;
  if (token_ >= 0) {
    const QRectF place = places_[static_cast<std::size_t>(token_)];
    QScrollBar* bar = verticalScrollBar();
    if (place.top() < bar->value() || place.bottom() > bar->value() + viewport()->height())
      bar->setValue(static_cast<int>(place.top() - viewport()->height() / 3.0));
  }
  viewport()->update();
}

// Words flow like text; a token without a leading space sticks to the one before it.
void TokenStrip::layOut() {
  const QFontMetricsF metrics(font());
  line_height_ = metrics.height() + 2 * kPadding;
  const double right = std::max(80.0, viewport()->width() - kMargin);
  const double space = metrics.horizontalAdvance(QLatin1Char(' '));
  places_.clear();
  double x = kMargin, y = kMargin;
  for (std::size_t t = 0; t < texts_.size(); ++t) {
    const double width =
        std::min(metrics.horizontalAdvance(texts_[t]) + 2 * kPadding, right - kMargin);
    if (has_space_[t] && x > kMargin) x += space;
    if (x > kMargin && x + width > right) {
      x = kMargin;
      y += line_height_ + kLineGap;
    }
    places_.emplace_back(x, y, width, line_height_);
    x += width + 1;
    if (breaks_line_[t]) {
      x = kMargin;
      y += line_height_ + kLineGap;
    }
  }
  const double height = texts_.empty() ? 0 : y + line_height_ + kMargin;
  verticalScrollBar()->setPageStep(viewport()->height());
  verticalScrollBar()->setSingleStep(static_cast<int>(line_height_ + kLineGap));
  verticalScrollBar()->setRange(0, std::max(0, static_cast<int>(height) - viewport()->height()));
  viewport()->update();
}

QRectF TokenStrip::tokenRect(int token) const {
  return places_[static_cast<std::size_t>(token)].translated(0, -verticalScrollBar()->value());
}

int TokenStrip::tokenAt(const QPointF& position) const {
  const QPointF p = position + QPointF(0, verticalScrollBar()->value());
  // Places go line by line: the first one whose bottom is below the point begins its line.
  auto place = std::partition_point(places_.begin(), places_.end(),
                                    [&](const QRectF& r) { return r.bottom() < p.y(); });
  for (; place != places_.end() && place->top() <= p.y(); ++place)
    if (place->contains(p)) return static_cast<int>(place - places_.begin());
  return -1;
}

void TokenStrip::paintEvent(QPaintEvent*) {
  QPainter painter(viewport());
  painter.setRenderHint(QPainter::Antialiasing);
  const double top = verticalScrollBar()->value();
  auto place = std::partition_point(places_.begin(), places_.end(),
                                    [&](const QRectF& r) { return r.bottom() < top; });
  for (; place != places_.end() && place->top() < top + viewport()->height(); ++place) {
    const auto t = static_cast<std::size_t>(place - places_.begin());
    const QRectF box = place->translated(0, -top);
    const double shade =
        t < shades_.size() && std::isfinite(shades_[t]) ? std::clamp(shades_[t], 0.0, 1.0) : 0;
    painter.setPen(Qt::NoPen);
    painter.setBrush(shade_color(palette(), shade));
    painter.drawRoundedRect(box, 2, 2);
    if (static_cast<int>(t) == token_) {
      painter.setBrush(Qt::NoBrush);
      painter.setPen(QPen(mark_color(palette()), 1.6));
      painter.drawRoundedRect(box.adjusted(-0.5, -0.5, 0.5, 0.5), 2, 2);
    }
    painter.setPen(text_on(shade_color(palette(), shade), palette()));
    const QRectF inner = box.adjusted(kPadding, 0, -kPadding + 1, 0);
    painter.drawText(inner, Qt::AlignVCenter | Qt::AlignLeft | Qt::TextSingleLine,
                     painter.fontMetrics().elidedText(texts_[t], Qt::ElideRight,
                                                      static_cast<int>(std::ceil(inner.width()))));
  }
}

void TokenStrip::resizeEvent(QResizeEvent*) { layOut(); }

void TokenStrip::changeEvent(QEvent* event) {
  if (event->type() == QEvent::FontChange) layOut();
  QAbstractScrollArea::changeEvent(event);
}

void TokenStrip::mousePressEvent(QMouseEvent* event) {
  const int token = tokenAt(event->position());
  if (token >= 0) emit tokenPicked(token);
}

bool TokenStrip::viewportEvent(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QAbstractScrollArea::viewportEvent(event);
  auto* help = static_cast<QHelpEvent*>(event);
  const int token = tokenAt(help->pos());
  if (token < 0)
    QToolTip::hideText();
  else
    QToolTip::showText(help->globalPos(), tr("token %1: %2").arg(token).arg(tokenText(token)),
                       this);
  return true;
}

}  // namespace sinkscope
