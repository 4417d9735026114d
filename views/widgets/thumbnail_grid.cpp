// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/widgets/thumbnail_grid.h"

#include <QFontMetricsF>
#include <QMouseEvent>
#include <QPainter>
#include <algorithm>
#include <cmath>

#include "core/draw/colormap.h"
#include "core/draw/ticks.h"
#include "views/theme.h"

namespace sinkscope {
namespace {

constexpr double kLeft = 40, kTop = 8, kRight = 10, kBottom = 40;
constexpr double kLargestTile = 96;

// First source cell of each pixel when n cells fill `pixels` pixels; one more at the end.
std::vector<int> edges(int n, int pixels) {
  std::vector<int> first;
  for (int p = 0; p <= pixels; ++p) first.push_back(p * n / pixels);
  return first;
}

}  // namespace

ThumbnailGrid::ThumbnailGrid(QWidget* parent) : QWidget(parent) {
  setMouseTracking(true);
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
}

void ThumbnailGrid::setSnapshot(std::shared_ptr<const ThumbnailSnapshot> snapshot) {
  snapshot_ = std::move(snapshot);
  image_ = {};
  update();
}

void ThumbnailGrid::setRange(const ValueRange& range) {
  range_ = range;
  image_ = {};
  update();
}

void ThumbnailGrid::setHead(int layer, int head) {
  layer_ = layer;
  head_ = head;
  update();
}

ThumbnailGrid::Tiles ThumbnailGrid::tiles() const {
  Tiles tiles;
  if (snapshot_ == nullptr || snapshot_->layers.empty()) return tiles;
  const auto n_layers = static_cast<double>(snapshot_->layers.size());
  tiles.width = std::min(kLargestTile, (width() - kLeft - kRight) / n_layers);
  tiles.height = std::min(kLargestTile, (height() - kTop - kBottom) / snapshot_->n_heads);
  // Square as far as possible, yet never more than twice as long as wide: the room is used.
  tiles.width = std::min(tiles.width, 2 * tiles.height);
  tiles.height = std::min(tiles.height, 2 * tiles.width);
  tiles.left = kLeft;
  tiles.top = kTop;
  return tiles;
}

QRectF ThumbnailGrid::tileRect(int layer_slot, int head) const {
  const Tiles t = tiles();
  const double gap = std::min(t.width, t.height) >= 10 ? 1 : 0;
  return {t.left + layer_slot * t.width, t.top + head * t.height, t.width - gap, t.height - gap};
}

QPoint ThumbnailGrid::slotAt(const QPointF& position) const {
  const Tiles t = tiles();
  if (t.width <= 0 || t.height <= 0) return {-1, -1};
  const int slot = static_cast<int>(std::floor((position.x() - t.left) / t.width));
  const int head = static_cast<int>(std::floor((position.y() - t.top) / t.height));
  const bool is_inside = slot >= 0 && slot < static_cast<int>(snapshot_->layers.size()) &&
                         head >= 0 && head < snapshot_->n_heads;
  return is_inside ? QPoint(slot, head) : QPoint(-1, -1);
}

QImage ThumbnailGrid::render(double ratio) const {
  QImage image(QSizeF(width() * ratio, height() * ratio).toSize(),
               QImage::Format_ARGB32_Premultiplied);
  image.setDevicePixelRatio(ratio);
  image.fill(Qt::transparent);
  const Colormap colors = colormap("viridis");
  std::vector<QRgb> table;  // 1024 steps of the color axis: a tile has thousands of pixels
  for (int i = 0; i < 1024; ++i) table.push_back(color_at(i / 1023.0, colors));
  const int side = snapshot_->side;
  for (int slot = 0; slot < static_cast<int>(snapshot_->layers.size()); ++slot)
    for (int head = 0; head < snapshot_->n_heads; ++head) {
      const QRectF tile = tileRect(slot, head);
      const int x0 = static_cast<int>(std::ceil(tile.left() * ratio));
      const int y0 = static_cast<int>(std::ceil(tile.top() * ratio));
      const int w = std::max(1, static_cast<int>(tile.right() * ratio) - x0);
      const int h = std::max(1, static_cast<int>(tile.bottom() * ratio) - y0);
      const std::vector<int> cols = edges(side, w), rows = edges(side, h);
      const float* map = snapshot_->values->data() +
                         (std::ptrdiff_t{slot} * snapshot_->n_heads + head) * side * side;
      for (int y = 0; y < h && y0 + y < image.height(); ++y) {
        auto* line = reinterpret_cast<QRgb*>(image.scanLine(y0 + y));
        const auto row = static_cast<std::size_t>(y);
        const int r1 = std::max(rows[row] + 1, rows[row + 1]);
        for (int x = 0; x < w && x0 + x < image.width(); ++x) {
          const auto col = static_cast<std::size_t>(x);
          const int c0 = cols[col], c1 = std::max(c0 + 1, cols[col + 1]);
          if (c0 > r1 - 1) continue;  // above the diagonal: not there
          float top = 0;
          for (int r = rows[row]; r < r1; ++r)
            for (int c = c0; c < c1; ++c) top = std::fmax(top, map[r * side + c]);
          const double place = std::clamp(normalized(top, range_), 0.0, 1.0);
          line[x0 + x] = table[static_cast<std::size_t>(place * 1023)];
        }
      }
    }
  return image;
}

void ThumbnailGrid::paintLabels(QPainter& painter, const Tiles& t) const {
  painter.setFont(caption_font(font()));
  painter.setPen(palette().color(QPalette::Text));
  const QFontMetricsF metrics(painter.font());
  const int n_layers = static_cast<int>(snapshot_->layers.size());
  const double bottom = t.top + snapshot_->n_heads * t.height;
  for (const int slot : tick_cells(0, n_layers - 1, 28 / t.width)) {
    const double x = t.left + (slot + 0.5) * t.width;
    painter.drawText(QRectF(x - 20, bottom + 3, 40, metrics.height()), Qt::AlignCenter,
                     QString::number(snapshot_->layers[static_cast<std::size_t>(slot)]));
  }
  for (const int head : tick_cells(0, snapshot_->n_heads - 1, metrics.height() / t.height))
    painter.drawText(QRectF(0, t.top + (head + 0.5) * t.height - metrics.height() / 2, kLeft - 6,
                            metrics.height()),
                     Qt::AlignRight | Qt::AlignVCenter, QString::number(head));
  painter.drawText(
      QRectF(t.left, bottom + 3 + metrics.height(), n_layers * t.width, metrics.height()),
      Qt::AlignCenter, tr("layer"));
  painter.save();
  painter.translate(metrics.height() / 2 + 1, t.top + snapshot_->n_heads * t.height / 2);
  painter.rotate(-90);
  painter.drawText(QRectF(-60, -metrics.height() / 2, 120, metrics.height()), Qt::AlignCenter,
                   tr("head"));
  painter.restore();
}

void ThumbnailGrid::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  const Tiles t = tiles();
  if (t.width <= 0 || t.height <= 0) return;
  const double ratio = devicePixelRatioF();
  if (image_.isNull() || image_.size() != QSizeF(width() * ratio, height() * ratio).toSize())
    image_ = render(ratio);
  painter.drawImage(QPointF(0, 0), image_);
  paintLabels(painter, t);
  const auto& layers = snapshot_->layers;
  const auto chosen = std::find(layers.begin(), layers.end(), layer_);
  if (chosen == layers.end() || head_ < 0) return;
  painter.setPen(QPen(mark_color(palette()), 2));
  painter.drawRect(
      tileRect(static_cast<int>(chosen - layers.begin()), head_).adjusted(-1, -1, 1, 1));
}

void ThumbnailGrid::mousePressEvent(QMouseEvent* event) {
  if (snapshot_ == nullptr) return;
  const QPoint at = slotAt(event->position());
  if (at.x() >= 0) emit headPicked(at.x(), at.y());
}

void ThumbnailGrid::mouseMoveEvent(QMouseEvent* event) {
  if (snapshot_ == nullptr) return;
  const QPoint at = slotAt(event->position());
  emit hovered(at.x(), at.y());
}

void ThumbnailGrid::leaveEvent(QEvent*) { emit hovered(-1, -1); }

}  // namespace sinkscope
