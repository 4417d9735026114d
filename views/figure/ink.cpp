// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/ink.h"

#include <QPainter>
#include <QPainterPath>

#include "views/figure/font.h"

namespace sinkscope {

void Ink::text(QPointF at, const QString& text, Align align, double pt, const QColor& color) const {
  if (text.isEmpty()) return;
  const double width = align == Align::left ? 0 : ruler_.width(text, pt);
  at.rx() -= align == Align::right ? width : width / 2;
  const QFont font = figure_font(pt);
  if (options_.text == FigureText::as_paths) {
    QPainterPath path;
    path.addText(at, font, text);
    painter_.fillPath(path, color);
    return;
  }
  painter_.setFont(font);
  painter_.setPen(color);
  painter_.drawText(at, text);
}

void Ink::text(QPointF at, const QString& text, Align align) const {
  this->text(at, text, align, ruler_.font_pt(), Qt::black);
}

void Ink::upward_text(QPointF at, const QString& text, Align align) const {
  painter_.save();
  painter_.translate(at);
  painter_.rotate(-90);
  this->text(QPointF(0, 0), text, align);
  painter_.restore();
}

}  // namespace sinkscope
