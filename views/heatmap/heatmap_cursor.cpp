// SPDX-License-Identifier: GPL-3.0-or-later
#include <qcustomplot.h>

#include <QMouseEvent>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

#include "views/heatmap/heatmap.h"
#include "views/heatmap/heatmap_parts.h"

namespace sinkscope {

namespace {

constexpr double kSmallestView = 2;  // cells
constexpr int kDragStart = 4;        // pixels
constexpr double kPinSize = 9;

// [from, to) moved into [0, size] and cut to it.
void clamp_axis(double& from, double& to, double size) {
  const double extent = std::clamp(to - from, std::min(kSmallestView, size), size);
  const double center = (from + to) / 2;
  from = std::clamp(center - extent / 2, 0.0, size - extent);
  to = from + extent;
}

void zoom_axis(double& from, double& to, double at, double factor) {
  from = at - (at - from) * factor;
  to = at + (to - at) * factor;
}

}  // namespace

CellRect Heatmap::wholeView() const {
  return {0, 0, static_cast<double>(scene_->grid().rows()),
          static_cast<double>(scene_->grid().cols())};
}

CellRect Heatmap::clampedView(CellRect view) const {
  clamp_axis(view.top, view.bottom, scene_->grid().rows());
  clamp_axis(view.left, view.right, scene_->grid().cols());
  return view;
}

void Heatmap::setView(const CellRect& view) {
  if (!scene_ || scene_->grid().empty()) return;
  view_ = clampedView(view);
  refresh();
}

void Heatmap::resetView() {
  if (scene_) setView(wholeView());
}

std::optional<CellRect> Heatmap::zoomedTo() const {
  if (!scene_ || scene_->grid().empty()) return std::nullopt;
  const CellRect cells{std::floor(view_.top), std::floor(view_.left), std::ceil(view_.bottom),
                       std::ceil(view_.right)};
  return cells == wholeView() ? std::nullopt : std::optional(cells);
}

void Heatmap::moveView(const CellRect& view) {
  const CellRect before = view_;
  setView(view);
  if (view_ != before) emit viewChanged(view_);
}

QRectF Heatmap::cellRect(int row, int col) const {
  const QRectF area = plotArea();
  const double height = area.height() / std::max(view_.height(), 1e-9);
  const double width = area.width() / std::max(view_.width(), 1e-9);
  return {area.left() + (col - view_.left) * width, area.top() + (row - view_.top) * height, width,
          height};
}

std::optional<CellAt> Heatmap::cellAt(const QPointF& pixel) const {
  const QRectF area = plotArea();
  if (!scene_ || scene_->grid().empty() || !area.contains(pixel)) return std::nullopt;
  const double row = view_.top + (pixel.y() - area.top()) / area.height() * view_.height();
  const double col = view_.left + (pixel.x() - area.left()) / area.width() * view_.width();
  return CellAt{std::clamp(static_cast<int>(row), 0, scene_->grid().rows() - 1),
                std::clamp(static_cast<int>(col), 0, scene_->grid().cols() - 1)};
}

void Heatmap::setCursorCell(std::optional<CellAt> cell) {
  if (cursor_ == cell) return;
  cursor_ = cell;
  placeCursor();
  plot_->layer("cursor")->replot();
}

void Heatmap::setSelectedCell(std::optional<CellAt> cell) {
  if (selected_ == cell) return;
  selected_ = cell;
  placeCursor();
  plot_->layer("cursor")->replot();
}

void Heatmap::setPinnedCells(std::vector<CellAt> cells) {
  if (pinned_ == cells) return;
  pinned_ = std::move(cells);
  placePins();
  plot_->layer("cursor")->replot();
}

void Heatmap::placePins() {
  for (QCPAbstractItem* item : parts_->pins) plot_->removeItem(item);
  parts_->pins.clear();
  for (const CellAt& cell : pinned_) {
    if (!scene_ || cell.row >= scene_->grid().rows() || cell.col >= scene_->grid().cols()) continue;
    auto* circle = new QCPItemTracer(plot_);
    circle->setLayer("cursor");
    circle->setStyle(QCPItemTracer::tsCircle);
    circle->setSize(kPinSize);
    circle->setPen(QPen(parts_->selected->pen().color(), 1.5));
    circle->setBrush(Qt::NoBrush);
    circle->position->setCoords(cell.col + 0.5, cell.row + 0.5);
    parts_->pins.push_back(circle);
  }
}

void Heatmap::placeCursor() {
  parts_->row_line->setVisible(cursor_.has_value());
  parts_->col_line->setVisible(cursor_.has_value());
  if (cursor_) {
    const double row = cursor_->row + 0.5, col = cursor_->col + 0.5;
    parts_->row_line->point1->setCoords(0, row);
    parts_->row_line->point2->setCoords(1, row);
    parts_->col_line->point1->setCoords(col, 0);
    parts_->col_line->point2->setCoords(col, 1);
  }
  parts_->selected->setVisible(selected_.has_value());
  if (selected_) {
    parts_->selected->topLeft->setCoords(selected_->col, selected_->row);
    parts_->selected->bottomRight->setCoords(selected_->col + 1, selected_->row + 1);
  }
}

bool Heatmap::eventFilter(QObject* watched, QEvent* event) {
  if (watched != plot_ || !scene_) return QWidget::eventFilter(watched, event);
  switch (event->type()) {
    case QEvent::Resize:
      applyMargins();
      refresh();
      return false;
    case QEvent::Wheel: {
      const auto* wheel = static_cast<QWheelEvent*>(event);
      const QPoint turn = wheel->angleDelta();
      const int steps = turn.y() != 0 ? turn.y() : turn.x();  // Shift turns the wheel sideways
      zoom(wheel->position() + plot_->pos(), std::pow(1.25, -steps / 120.0), wheel->modifiers());
      return true;
    }
    case QEvent::MouseButtonPress:
      press(static_cast<QMouseEvent*>(event));
      return true;
    case QEvent::MouseMove:
      drag(static_cast<QMouseEvent*>(event));
      return true;
    case QEvent::MouseButtonRelease:
      release(static_cast<QMouseEvent*>(event));
      return true;
    case QEvent::MouseButtonDblClick:
      moveView(wholeView());
      return true;
    case QEvent::Leave:
      if (hovered_) emit cellHovered(-1, -1);
      hovered_.reset();
      return false;
    default:
      return QWidget::eventFilter(watched, event);
  }
}

void Heatmap::zoom(const QPointF& at, double factor, Qt::KeyboardModifiers modifiers) {
  const QRectF area = plotArea();
  CellRect view = view_;
  const double row = view.top + (at.y() - area.top()) / area.height() * view.height();
  const double col = view.left + (at.x() - area.left()) / area.width() * view.width();
  if (!(modifiers & Qt::ShiftModifier)) zoom_axis(view.top, view.bottom, row, factor);
  if (!(modifiers & Qt::ControlModifier)) zoom_axis(view.left, view.right, col, factor);
  moveView(view);
}

void Heatmap::press(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return;
  press_ = event->position();
  press_view_ = view_;
  dragging_ = false;
}

void Heatmap::drag(QMouseEvent* event) {
  if (!press_) return hover(event->position() + plot_->pos());
  const QPointF moved = event->position() - *press_;
  dragging_ = dragging_ || moved.manhattanLength() >= kDragStart;
  if (!dragging_) return;
  const QRectF area = plotArea();
  const double down = -moved.y() / area.height() * press_view_.height();
  const double right = -moved.x() / area.width() * press_view_.width();
  moveView({press_view_.top + down, press_view_.left + right, press_view_.bottom + down,
            press_view_.right + right});
}

void Heatmap::release(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton || !press_) return;
  press_.reset();
  if (dragging_) return;
  if (const auto cell = cellAt(event->position() + plot_->pos()))
    emit cellPicked(cell->row, cell->col);
}

void Heatmap::hover(const QPointF& pixel) {
  const std::optional<CellAt> cell = cellAt(pixel);
  if (cell == hovered_) return;
  hovered_ = cell;
  emit cellHovered(cell ? cell->row : -1, cell ? cell->col : -1);
}

}  // namespace sinkscope
