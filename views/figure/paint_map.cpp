// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/figure/paint_map.h"

#include <fmt/format.h>

#include <QImage>
#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <cmath>

#include "core/draw/pyramid.h"
#include "core/draw/raster.h"
#include "core/error.h"

namespace sinkscope {
namespace {

constexpr std::int64_t kMostRectangles = 2500;
constexpr double kSmallestMark = 3;  // points

// Masked pixels (transparent) become paper.
QImage on_white(const Raster& raster) {
  QImage image(raster.width, raster.height, QImage::Format_RGB32);
  for (int y = 0; y < raster.height; ++y) {
    auto* line = reinterpret_cast<QRgb*>(image.scanLine(y));
    for (int x = 0; x < raster.width; ++x) {
      const Argb color = raster.at(x, y);
      line[x] = (color >> 24) == 0 ? 0xFFFFFFFFU : color;
    }
  }
  return image;
}

void paint_rectangles(const Raster& raster, const QRectF& plot, QPainter& painter) {
  const double width = plot.width() / raster.width, height = plot.height() / raster.height;
  painter.setPen(Qt::NoPen);
  for (int y = 0; y < raster.height; ++y)
    for (int x = 0; x < raster.width; ++x) {
      const Argb color = raster.at(x, y);
      if ((color >> 24) == 0) continue;
      painter.setBrush(QColor::fromRgb(color));
      painter.drawRect(QRectF(plot.left() + x * width, plot.top() + y * height, width, height));
    }
}

// Dots of a page beyond which a strip of gains keeps no more columns.
constexpr double kStripDotsPerPoint = 600.0 / 72;

// Pools by ratio: the cell farthest from 1.
PooledCells farthest_from_one(const Grid& grid, int rows, int cols) {
  std::vector<double> logs;
  logs.reserve(static_cast<std::size_t>(grid.size()));
  for (int row = 0; row < grid.rows(); ++row)
    for (int col = 0; col < grid.cols(); ++col) logs.push_back(std::log(grid.at(row, col)));
  // A gain of 0 lies infinitely far; its logarithm is −inf, which pooling keeps.
  PooledCells cells = Pyramid(Grid(grid.rows(), grid.cols(), std::move(logs))).reduced(rows, cols);
  for (std::size_t i = 0; i < cells.values.size(); ++i) {
    if (cells.kinds[i] == CellKind::minus_inf) cells.kinds[i] = CellKind::finite;
    cells.values[i] = std::exp(cells.values[i]);
  }
  return cells;
}

// Pixels that a map may have on this plot; 0 × 0 = any number.
struct Dots {
  int rows = 0, cols = 0;
};

Dots dots_of(const FigureMap& map, const QRectF& plot, double pixels_per_point) {
  const double dots = pixels_per_point > 0 ? pixels_per_point
                      : map.is_about_one   ? kStripDotsPerPoint
                                           : 0;
  if (dots <= 0) return {};
  return {std::max(1, static_cast<int>(plot.height() * dots)),
          std::max(1, static_cast<int>(plot.width() * dots))};
}

Raster cells_of(const FigureMap& map, const FigureColors& colors, const QRectF& plot,
                double pixels_per_point) {
  const Grid& grid = map.grid;
  if (!is_pooled(map, plot, pixels_per_point)) return color_cells(grid, colors.range, colors.map);
  const Dots dots = dots_of(map, plot, pixels_per_point);
  const int rows = std::min(dots.rows, grid.rows()), cols = std::min(dots.cols, grid.cols());
  return color_cells(
      map.is_about_one ? farthest_from_one(grid, rows, cols) : Pyramid(grid).reduced(rows, cols),
      colors.range, colors.map);
}

void paint_marks(const Grid& grid, const QRectF& plot, QPainter& painter) {
  const double width = plot.width() / grid.cols(), height = plot.height() / grid.rows();
  if (std::min(width, height) < kSmallestMark) return;
  for (int row = 0; row < grid.rows(); ++row)
    for (int col = 0; col < grid.cols(); ++col) {
      const CellKind kind = grid.kind(row, col);
      if (kind == CellKind::finite || kind == CellKind::masked) continue;
      const QPointF center(plot.left() + (col + 0.5) * width, plot.top() + (row + 0.5) * height);
      const double r = std::min(width, height) * 0.3;
      painter.setPen(QPen(Qt::black, std::min(0.6, r / 3)));
      if (kind == CellKind::nan) {
        painter.drawLine(center + QPointF(-r, -r), center + QPointF(r, r));
        painter.drawLine(center + QPointF(-r, r), center + QPointF(r, -r));
      } else {
        const double tip = kind == CellKind::plus_inf ? -r : r;
        const QPointF triangle[] = {center + QPointF(-r, -tip), center + QPointF(r, -tip),
                                    center + QPointF(0, tip)};
        painter.setBrush(Qt::white);
        painter.drawPolygon(triangle, 3);
        painter.setBrush(Qt::NoBrush);
      }
    }
}

// A triangle on an end of the bar, in the color of cells beyond it.
void paint_end(const QRectF& bar, double base_y, double tip_y, Argb color, QPainter& painter) {
  const QPointF triangle[] = {
      {bar.left(), base_y}, {bar.right(), base_y}, {bar.center().x(), tip_y}};
  painter.setPen(QPen(Qt::black, 0.5));
  painter.setBrush(QColor::fromRgb(color));
  painter.drawPolygon(triangle, 3);
  painter.setBrush(Qt::NoBrush);
}

}  // namespace

bool is_pooled(const FigureMap& map, const QRectF& plot, double pixels_per_point) {
  const Dots dots = dots_of(map, plot, pixels_per_point);
  return dots.cols > 0 && (map.grid.cols() > dots.cols || map.grid.rows() > dots.rows);
}

void paint_map(const FigureMap& map, const FigureColors& colors, const QRectF& plot,
               const Ink& ink) {
  if (map.grid.empty()) return;
  QPainter& painter = ink.painter();
  FigureColors used = colors;
  if (map.nan_is_paper) used.map.nan = 0;
  if (ink.options().cells == FigureCells::as_rectangles) {
    if (map.grid.size() >= kMostRectangles)
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("--cells rectangles: expected a map below {} cells, found {} × {}; "
                              "an image has no seams and is smaller",
                              kMostRectangles, map.grid.rows(), map.grid.cols()));
    paint_rectangles(color_cells(map.grid, used.range, used.map), plot, painter);
  } else {
    const Raster raster = cells_of(map, used, plot, ink.options().pixels_per_point);
    painter.drawImage(plot, on_white(raster));
  }
  if (!map.nan_is_paper) paint_marks(map.grid, plot, painter);
}

void paint_color_bar(const FigureColors& colors, const PanelPlace& place, const Ink& ink) {
  QPainter& painter = ink.painter();
  QRectF bar = place.bar;
  const double tip = kBarWidth * 0.8;
  QImage ramp(1, 256, QImage::Format_RGB32);
  for (int i = 0; i < 256; ++i)
    ramp.setPixel(0, 255 - i, colors.map.colors[static_cast<std::size_t>(i)]);
  painter.drawImage(bar, ramp);
  painter.setPen(QPen(Qt::black, 0.5));
  painter.setBrush(Qt::NoBrush);
  painter.drawRect(bar);
  if (colors.summary.above > 0 || !colors.above_text.empty())
    paint_end(bar, bar.top(), bar.top() - tip, colors.map.over, painter);
  if (colors.summary.below > 0)
    paint_end(bar, bar.bottom(), bar.bottom() + tip, colors.map.under, painter);
  double right = 0;
  for (const FigureTick& tick : place.bar_ticks) {
    const double y = bar.bottom() - tick.at * bar.height();
    painter.setPen(QPen(Qt::black, 0.6));
    painter.drawLine(QPointF(bar.right(), y), QPointF(bar.right() + kTickLength, y));
    const QString text = QString::fromStdString(tick.text);
    ink.text(QPointF(bar.right() + kTickLength + 2, y + ink.half_height()), text, Ink::Align::left);
    right = std::max(right, ink.ruler().width(text));
  }
  if (!colors.above_text.empty())
    ink.text(QPointF(bar.center().x(), bar.top() - tip - 2),
             QString::fromStdString(colors.above_text), Ink::Align::center);
  ink.upward_text(
      QPointF(bar.right() + kTickLength + 2 + right + ink.ruler().font_pt(), bar.center().y()),
      QString::fromStdString(colors.label), Ink::Align::center);
}

}  // namespace sinkscope
