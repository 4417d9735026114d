// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/paint_series.h"

#include <QPainter>
#include <QPolygonF>
#include <algorithm>
#include <array>
#include <cmath>

namespace sinkscope {
namespace {

constexpr double kDotRadius = 1.1;

QPen pen_of(const FigureSeries& series) {
  QPen pen(series_color(series.color), series.color == kReferenceColor ? 0.8 : 1.0);
  pen.setCapStyle(Qt::RoundCap);
  pen.setJoinStyle(Qt::RoundJoin);
  if (series.style == FigureSeries::Style::dashed) pen.setDashPattern({3, 2.5});
  return pen;
}

class SeriesPainter {
 public:
  SeriesPainter(const FigurePanel& panel, const QRectF& plot, QPainter& painter)
      : panel_(panel), plot_(plot), painter_(painter) {}

  void paint(const FigureSeries& series) const {
    switch (series.style) {
      case FigureSeries::Style::line:
      case FigureSeries::Style::dashed:
        return paint_lines(series);
      case FigureSeries::Style::dots:
        return paint_dots(series);
      case FigureSeries::Style::bars:
        return paint_bars(series);
    }
  }

 private:
  bool is_drawable(const FigureSeries& series, std::size_t i) const {
    return std::isfinite(series.y[i]) && !(panel_.y.is_log && series.y[i] <= 0) &&
           !(panel_.x.is_log && series.x[i] <= 0);
  }
  QPointF point(double x, double y) const {
    return {place_on(panel_.x, x, plot_.left(), plot_.right()),
            place_on(panel_.y, y, plot_.bottom(), plot_.top())};
  }

  void paint_lines(const FigureSeries& series) const {
    painter_.setPen(pen_of(series));
    painter_.setBrush(Qt::NoBrush);
    QPolygonF line;
    const auto flush = [&] {
      if (line.size() > 1) painter_.drawPolyline(line);
      if (line.size() == 1) painter_.drawPoint(line.front());
      line.clear();
    };
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      if (is_drawable(series, i)) {
        line << point(series.x[i], series.y[i]);
      } else {
        flush();
      }
    }
    flush();
  }

  void paint_dots(const FigureSeries& series) const {
    painter_.setPen(Qt::NoPen);
    painter_.setBrush(series_color(series.color));
    for (std::size_t i = 0; i < series.x.size(); ++i)
      if (is_drawable(series, i))
        painter_.drawEllipse(point(series.x[i], series.y[i]), kDotRadius, kDotRadius);
    painter_.setBrush(Qt::NoBrush);
  }

  void paint_bars(const FigureSeries& series) const {
    painter_.setPen(Qt::NoPen);
    painter_.setBrush(series_color(series.color));
    const double zero = std::clamp(0.0, panel_.y.low, panel_.y.high);
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      if (!is_drawable(series, i)) continue;
      const QPointF value = point(series.x[i] - 0.4, series.y[i]);
      painter_.drawRect(QRectF(value, point(series.x[i] + 0.4, zero)).normalized());
    }
    painter_.setBrush(Qt::NoBrush);
    if (zero > panel_.y.low && zero < panel_.y.high) {
      const double y = point(panel_.x.low, zero).y();
      painter_.setPen(QPen(Qt::black, 0.5));
      painter_.drawLine(QPointF(plot_.left(), y), QPointF(plot_.right(), y));
    }
  }

  const FigurePanel& panel_;
  const QRectF& plot_;
  QPainter& painter_;
};

}  // namespace

QColor series_color(int index) {
  static const std::array<QColor, 6> colors = {QColor(0x00, 0x72, 0xB2), QColor(0xD5, 0x5E, 0x00),
                                               QColor(0x00, 0x9E, 0x73), QColor(0xCC, 0x79, 0xA7),
                                               QColor(0xE6, 0x9F, 0x00), QColor(0x56, 0xB4, 0xE9)};
  if (index < 0) return {0x70, 0x70, 0x70};
  return colors[static_cast<std::size_t>(index) % colors.size()];
}

void paint_series(const FigurePanel& panel, const PanelPlace& place, const Ink& ink) {
  if (panel.series.empty()) return;
  ink.painter().save();
  ink.painter().setClipRect(place.plot);
  const SeriesPainter painter(panel, place.plot, ink.painter());
  for (const FigureSeries& series : panel.series) painter.paint(series);
  ink.painter().restore();
}

void paint_legend(const FigurePanel& panel, const PanelPlace& place, const Ink& ink) {
  const double font = ink.ruler().font_pt(), line = TextRuler::line_height(font);
  double y = place.legend_top + 0.95 * font;
  for (const std::vector<int>& row : place.legend) {
    double x = place.plot.left();
    for (const int i : row) {
      const FigureSeries& series = panel.series[static_cast<std::size_t>(i)];
      const double middle = y - ink.half_height();
      if (series.style == FigureSeries::Style::dots || series.style == FigureSeries::Style::bars) {
        ink.painter().setPen(Qt::NoPen);
        ink.painter().setBrush(series_color(series.color));
        if (series.style == FigureSeries::Style::dots)
          ink.painter().drawEllipse(QPointF(x + 6, middle), kDotRadius, kDotRadius);
        else
          ink.painter().drawRect(QRectF(x + 3, middle - 2, 6, 4));
        ink.painter().setBrush(Qt::NoBrush);
      } else {
        ink.painter().setPen(pen_of(series));
        ink.painter().drawLine(QPointF(x, middle), QPointF(x + kLegendMark - 4, middle));
      }
      const QString text = QString::fromStdString(series.name);
      ink.text(QPointF(x + kLegendMark, y), text, Ink::Align::left);
      x += kLegendMark + ink.ruler().width(text) + kLegendGap;
    }
    y += line;
  }
}

}  // namespace sinkscope
