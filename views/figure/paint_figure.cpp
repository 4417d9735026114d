// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/paint_figure.h"

#include <QPainter>

#include "views/figure/ink.h"
#include "views/figure/paint_boxes.h"
#include "views/figure/paint_map.h"
#include "views/figure/paint_series.h"

namespace sinkscope {
namespace {

QString text_of(const std::string& text) { return QString::fromStdString(text); }

QPen line_pen() { return {Qt::black, 0.6, Qt::SolidLine, Qt::FlatCap, Qt::MiterJoin}; }

void paint_x_axis(const FigurePanel& panel, const PanelPlace& place, const Ink& ink) {
  const QRectF& plot = place.plot;
  const double font = ink.ruler().font_pt();
  for (const FigureTick& tick : place.x_ticks) {
    const double x = place_on(panel.x, tick.at, plot.left(), plot.right());
    ink.painter().setPen(line_pen());
    ink.painter().drawLine(QPointF(x, plot.bottom()), QPointF(x, plot.bottom() + kTickLength));
    const double top = plot.bottom() + kTickLength + 2;
    if (panel.x.is_sideways) {
      ink.upward_text(QPointF(x + ink.half_height(), top), text_of(tick.text), Ink::Align::right);
    } else {
      ink.text(QPointF(x, top + 0.9 * font), text_of(tick.text), Ink::Align::center);
    }
  }
  ink.text(QPointF(plot.center().x(), place.x_label_top + 0.95 * font), text_of(panel.x.label),
           Ink::Align::center);
}

void paint_y_axis(const FigurePanel& panel, const PanelPlace& place, const Ink& ink) {
  const QRectF& plot = place.plot;
  for (const FigureTick& tick : place.y_ticks) {
    const double y = place_on(panel.y, tick.at, plot.bottom(), plot.top());
    ink.painter().setPen(line_pen());
    ink.painter().drawLine(QPointF(plot.left() - kTickLength, y), QPointF(plot.left(), y));
    ink.text(QPointF(plot.left() - kTickLength - 2, y + ink.half_height()), text_of(tick.text),
             Ink::Align::right);
  }
  ink.upward_text(QPointF(place.y_label_left + ink.ruler().font_pt(), plot.center().y()),
                  text_of(panel.y.label), Ink::Align::center);
}

void paint_titles(const Figure& figure, int i, const PanelPlace& place, const Ink& ink) {
  const double pt = ink.ruler().title_pt();
  QPointF at = place.title;
  for (const QString& line : place.title_lines) {
    ink.text(at, line, Ink::Align::left, pt, Qt::black);
    at.ry() += TextRuler::line_height(pt);
  }
  if (figure.panel_labels.empty()) return;
  const QChar first = figure.panel_labels == "A" ? 'A' : 'a';
  ink.text(QPointF(place.y_label_left, place.title.y()),
           QChar(static_cast<char16_t>(first.unicode() + i % 26)), Ink::Align::left, pt * 1.15,
           Qt::black);
}

void paint_panel(const Figure& figure, int i, const PanelPlace& place, const Ink& ink) {
  const FigurePanel& panel = figure.panels[static_cast<std::size_t>(i)];
  for (const FigureMap& map : panel.maps)
    paint_map(map, figure.colors[static_cast<std::size_t>(map.colors)], place.plot, ink);
  paint_series(panel, place, ink);
  ink.painter().setPen(line_pen());
  ink.painter().setBrush(Qt::NoBrush);
  ink.painter().drawRect(place.plot);
  if (!place.bar.isNull())
    paint_color_bar(figure.colors[static_cast<std::size_t>(panel.maps.front().colors)], place, ink);
  paint_x_axis(panel, place, ink);
  paint_y_axis(panel, place, ink);
  paint_legend(panel, place, ink);
  paint_titles(figure, i, place, ink);
  paint_boxes(panel, place.plot, ink);
}

}  // namespace

void paint_figure(const Figure& figure, const FigureLayout& layout, const PaintOptions& options,
                  QPainter& painter) {
  const Ink ink(painter, options, figure.font_pt);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setRenderHint(QPainter::TextAntialiasing);
  painter.setRenderHint(QPainter::SmoothPixmapTransform, false);
  // Otherwise Qt stores large images as JPEG.
  painter.setRenderHint(QPainter::LosslessImageRendering);
  painter.fillRect(QRectF(QPointF(0, 0), layout.size), Qt::white);
  const double pt = ink.ruler().title_pt();
  double y = kMargin + 0.95 * pt;
  for (const QString& line : layout.title_lines) {
    ink.text(QPointF(layout.size.width() / 2, y), line, Ink::Align::center, pt, Qt::black);
    y += TextRuler::line_height(pt);
  }
  for (std::size_t i = 0; i < figure.panels.size(); ++i)
    paint_panel(figure, static_cast<int>(i), layout.panels[i], ink);
  y = layout.notes_top + 0.95 * ink.ruler().note_pt();
  for (const FigureLayout::NoteLine& line : layout.note_lines) {
    ink.text(QPointF(kMargin, y), line.text, Ink::Align::left, ink.ruler().note_pt(),
             line.is_warning ? QColor(190, 20, 20) : QColor(70, 70, 70));
    y += TextRuler::line_height(ink.ruler().note_pt());
  }
}

}  // namespace sinkscope
