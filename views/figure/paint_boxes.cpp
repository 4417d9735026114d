// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/paint_boxes.h"

#include <QPainter>
#include <algorithm>

namespace sinkscope {
namespace {

constexpr double kInset = 4, kPadding = 3, kSmallestFont = 0.75;

// Text that fits into the plot's width, and the size it is set in.
struct BoxText {
  std::vector<QString> lines;
  double pt = 0;
  QSizeF size;
};

BoxText fitted(const FigureBox& box, const QRectF& plot, const TextRuler& ruler) {
  const double room = plot.width() - 2 * kInset - 2 * kPadding;
  double widest = 1;
  for (const std::string& line : box.lines)
    widest = std::max(widest, ruler.width(QString::fromStdString(line)));
  BoxText text;
  text.pt = ruler.font_pt() * std::clamp(room / widest, kSmallestFont, 1.0);
  double width = 0;
  for (const std::string& line : box.lines)
    for (const QString& part : ruler.wrapped(QString::fromStdString(line), text.pt, room)) {
      text.lines.push_back(part);
      width = std::max(width, ruler.width(part, text.pt));
    }
  text.size =
      QSizeF(width + 2 * kPadding,
             TextRuler::line_height(text.pt) * static_cast<double>(text.lines.size()) + kPadding);
  return text;
}

QPointF corner_of(const FigureBox& box, const QRectF& plot, QSizeF size) {
  const QPointF low(plot.left() + kInset, plot.top() + kInset);
  const QPointF high(plot.right() - kInset - size.width(), plot.bottom() - kInset - size.height());
  switch (box.place) {
    case FigureBox::Place::bottom_right:
      return high;
    case FigureBox::Place::top_left:
      return low;
    case FigureBox::Place::bottom_left:
      return {low.x(), high.y()};
    case FigureBox::Place::top_right:
    case FigureBox::Place::beside_point:
      break;
  }
  return {high.x(), low.y()};
}

// Right of the cell, else left of it, else as little higher or lower as is free.
QRectF beside(const FigureBox& box, const FigurePanel& panel, const QRectF& plot, QSizeF size,
              const std::vector<QRectF>& taken) {
  const double x = place_on(panel.x, box.x, plot.left(), plot.right());
  const double y = place_on(panel.y, box.y, plot.bottom(), plot.top());
  const double step = size.height() + 1;
  QRectF first;
  for (const double shift : {0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0})
    for (const double left : {x + kInset, x - kInset - size.width()}) {
      const double lowest = std::max(plot.top() + 1, plot.bottom() - 1 - size.height());
      const double top = std::clamp(y - size.height() / 2 + shift * step, plot.top() + 1, lowest);
      const QRectF place(QPointF(left, top), size);
      if (left < plot.left() + 1 || place.right() > plot.right() - 1) continue;
      if (first.isNull()) first = place;
      if (std::none_of(taken.begin(), taken.end(),
                       [&](const QRectF& other) { return other.intersects(place); }))
        return place;
    }
  return first.isNull() ? QRectF(plot.topLeft() + QPointF(1, 1), size) : first;
}

void paint_box(const BoxText& text, const QRectF& place, const Ink& ink) {
  ink.painter().setPen(QPen(QColor(110, 110, 110), 0.5));
  ink.painter().setBrush(Qt::white);
  ink.painter().drawRoundedRect(place, 2, 2);
  ink.painter().setBrush(Qt::NoBrush);
  double y = place.top() + kPadding / 2 + 0.95 * text.pt;
  for (const QString& line : text.lines) {
    ink.text(QPointF(place.left() + kPadding, y), line, Ink::Align::left, text.pt, Qt::black);
    y += TextRuler::line_height(text.pt);
  }
}

}  // namespace

void paint_boxes(const FigurePanel& panel, const QRectF& plot, const Ink& ink) {
  std::vector<QRectF> taken;
  for (const FigureBox& box : panel.boxes) {
    const BoxText text = fitted(box, plot, ink.ruler());
    const QRectF place = box.place == FigureBox::Place::beside_point
                             ? beside(box, panel, plot, text.size, taken)
                             : QRectF(corner_of(box, plot, text.size), text.size);
    paint_box(text, place, ink);
    taken.push_back(place);
  }
}

}  // namespace sinkscope
