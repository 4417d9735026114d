// SPDX-License-Identifier: GPL-3.0-or-later
#include <qcustomplot.h>

#include <QFontMetricsF>
#include <algorithm>

#include "views/heatmap/heatmap.h"
#include "views/heatmap/heatmap_parts.h"

namespace sinkscope {

namespace {

QCPItemText* boxed_text(QCustomPlot* plot, const QPalette& palette, const QFont& font) {
  auto* text = new QCPItemText(plot);
  text->setFont(font);
  text->setColor(palette.color(QPalette::Text));
  QColor back = palette.color(QPalette::Base);
  back.setAlpha(235);
  text->setBrush(back);
  text->setPen(QPen(palette.color(QPalette::PlaceholderText), 1));
  text->setPadding(QMargins(4, 2, 4, 2));
  text->position->setType(QCPItemPosition::ptAbsolute);
  text->setClipToAxisRect(false);
  return text;
}

// The first place beside the cell that lies on the map and on no other box: to its right or left,
// at its height or further up and down.
QRectF free_place(const QPointF& cell, const QSizeF& size, const QRectF& area,
                  const std::vector<QRectF>& taken) {
  constexpr double kGap = 10;
  QRectF fallback;
  for (const double down : {0.0, 1.2, -1.2, 2.4, -2.4, 3.6, -3.6})
    for (const bool to_right : {true, false}) {
      const double x = to_right ? cell.x() + kGap : cell.x() - kGap - size.width();
      const QRectF place(QPointF(x, cell.y() + (down - 0.5) * size.height()), size);
      if (fallback.isNull()) fallback = place;
      if (area.contains(place) && std::none_of(taken.begin(), taken.end(), [&](const QRectF& r) {
            return r.intersects(place);
          }))
        return place;
    }
  return fallback;
}

}  // namespace

void Heatmap::placeNotes() {
  for (QCPAbstractItem* item : parts_->notes) plot_->removeItem(item);
  parts_->notes.clear();
  const QFont font = plot_->xAxis->tickLabelFont();
  const QFontMetricsF metrics(font);
  const QRectF area = parts_->rect->rect();
  std::vector<QRectF> taken;
  for (const CellNote& note : scene_->notes) {
    const QRectF cell = cellRect(note.row, note.col).translated(-plot_->pos());
    if (!area.contains(cell.center())) continue;
    const QString shown = QString::fromStdString(note.text);
    const QSizeF size = metrics.size(0, shown) + QSizeF(8, 4);
    const QRectF place = free_place(cell.center(), size, area.adjusted(2, 2, -2, -2), taken);
    taken.push_back(place);
    auto* leader = new QCPItemLine(plot_);
    leader->setPen(QPen(palette().color(QPalette::Text), 1));
    // From the side of the cell, which stays visible, to the side of the box.
    const bool to_right = place.left() > cell.center().x();
    const double from = to_right ? cell.right() + 2 : cell.left() - 2;
    for (QCPItemPosition* end : {leader->start, leader->end})
      end->setType(QCPItemPosition::ptAbsolute);
    leader->start->setCoords(from, cell.center().y());
    leader->end->setCoords(to_right ? place.left() : place.right(), place.center().y());
    auto* text = boxed_text(plot_, palette(), font);
    text->setText(shown);
    text->setPositionAlignment(Qt::AlignCenter);
    text->position->setCoords(place.center());
    parts_->notes.push_back(leader);
    parts_->notes.push_back(text);
  }
}

void Heatmap::placeBox() {
  if (scene_->box.empty()) return;
  auto* text = boxed_text(plot_, palette(), font());
  text->setText(QString::fromStdString(scene_->box));
  text->setTextAlignment(Qt::AlignRight);
  text->setPositionAlignment(Qt::AlignRight | Qt::AlignBottom);
  text->position->setCoords(parts_->rect->rect().bottomRight() - QPointF(8, 8));
  parts_->notes.push_back(text);
}

}  // namespace sinkscope
