// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/heatmap/heatmap.h"

#include <qcustomplot.h>

#include <QEvent>
#include <QLabel>
#include <QVBoxLayout>
#include <algorithm>

#include "views/heatmap/cell_picture.h"
#include "views/heatmap/heatmap_parts.h"
#include "views/theme.h"

namespace sinkscope {

namespace {

// The cells in view as a plottable, so that axes, clipping and layers are the plot's.
class CellsPlottable : public QCPAbstractPlottable {
 public:
  CellsPlottable(QCPAxis* key, QCPAxis* value, const Heatmap& heatmap, const HeatmapParts& parts)
      : QCPAbstractPlottable(key, value), heatmap_(heatmap), parts_(parts) {}

  double selectTest(const QPointF&, bool, QVariant*) const override { return -1; }
  QCPRange getKeyRange(bool& found, QCP::SignDomain) const override { return nothing(found); }
  QCPRange getValueRange(bool& found, QCP::SignDomain, const QCPRange&) const override {
    return nothing(found);
  }

 protected:
  void draw(QCPPainter* painter) override {
    if (heatmap_.scene() == nullptr) return;
    const QRect area = parts_.rect->rect();
    const double ratio = painter->device()->devicePixelRatioF();
    const int width = qRound(area.width() * ratio), height = qRound(area.height() * ratio);
    if (width <= 0 || height <= 0) return;
    QImage picture =
        paint_cells(*heatmap_.scene(), parts_.range, parts_.map, heatmap_.view(), width, height);
    picture.setDevicePixelRatio(ratio);
    painter->setAntialiasing(false);  // which takes back QCustomPlot's shift by half a pixel
    painter->drawImage(area.topLeft(), picture);
  }
  void drawLegendIcon(QCPPainter*, const QRectF&) const override {}

 private:
  static QCPRange nothing(bool& found) {
    found = false;
    return {};
  }
  const Heatmap& heatmap_;
  const HeatmapParts& parts_;
};

QLabel* small_label(QWidget* parent, Qt::Alignment alignment) {
  auto* label = new QLabel(parent);
  label->setAlignment(alignment);
  label->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
  return label;
}

}  // namespace

Heatmap::Heatmap(QWidget* parent)
    : QWidget(parent),
      title_label_(small_label(this, Qt::AlignLeft)),
      note_label_(small_label(this, Qt::AlignRight)),
      placeholder_label_(new QLabel(this)),
      plot_(new QCustomPlot(this)),
      parts_(std::make_unique<HeatmapParts>()) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(4, 4, 4, 2);
  column->setSpacing(2);
  column->addWidget(title_label_);
  column->addWidget(plot_, 1);
  column->addWidget(placeholder_label_, 1);
  column->addWidget(note_label_);
  placeholder_label_->setAlignment(Qt::AlignCenter);
  placeholder_label_->setWordWrap(true);
  QFont small = font();
  small.setPointSizeF(small.pointSizeF() * 0.85);
  note_label_->setFont(small);

  plot_->setMouseTracking(true);
  plot_->installEventFilter(this);
  plot_->setBufferDevicePixelRatio(devicePixelRatioF());
  plot_->setPlottingHint(QCP::phCacheLabels, false);
  parts_->rect = plot_->axisRect();
  parts_->rect->setAutoMargins(QCP::msNone);
  parts_->rect->setupFullAxesBox();
  for (QCPAxis* axis : parts_->rect->axes()) {
    axis->grid()->setVisible(false);
    axis->setTickLengthIn(0);
    axis->setTicker(QSharedPointer<QCPAxisTickerText>::create());
  }
  for (QCPAxis* axis : {plot_->xAxis, plot_->yAxis}) axis->setTickLengthOut(4);
  for (QCPAxis* axis : {plot_->xAxis2, plot_->yAxis2}) axis->setTicks(false);
  plot_->yAxis->setRangeReversed(true);
  new CellsPlottable(plot_->xAxis, plot_->yAxis, *this, *parts_);

  // Moving the cursor repaints this layer alone.
  plot_->addLayer("cursor", plot_->layer("overlay"), QCustomPlot::limBelow);
  plot_->layer("cursor")->setMode(QCPLayer::lmBuffered);
  parts_->row_line = new QCPItemStraightLine(plot_);
  parts_->col_line = new QCPItemStraightLine(plot_);
  parts_->selected = new QCPItemRect(plot_);
  for (QCPAbstractItem* item : {static_cast<QCPAbstractItem*>(parts_->row_line),
                                static_cast<QCPAbstractItem*>(parts_->col_line),
                                static_cast<QCPAbstractItem*>(parts_->selected)}) {
    item->setLayer("cursor");
    item->setVisible(false);
  }
  setPlaceholder({});
  applyPalette();
  setScene(nullptr);
}

Heatmap::~Heatmap() = default;

void Heatmap::setScene(std::shared_ptr<const HeatmapScene> scene) {
  const bool same_size = scene_ && scene && scene_->grid().rows() == scene->grid().rows() &&
                         scene_->grid().cols() == scene->grid().cols();
  scene_ = std::move(scene);
  const bool shown = scene_ && !scene_->grid().empty();
  plot_->setVisible(shown);
  placeholder_label_->setVisible(!shown);
  if (!scene_) {
    title_label_->clear();
    note_label_->clear();
    note_.clear();
    row_ticks_.clear();
    col_ticks_.clear();
    press_.reset();
    dragging_ = false;
    announceHovered(false);
    return;
  }
  parts_->range = scene_->range;
  parts_->map = colormap(scene_->colormap);
  counts_ = QString::fromStdString(scene_->counts);
  if (!same_size) {
    view_ = wholeView();
    cursor_.reset();
    selected_.reset();
  }
  placePins();
  applyMargins();
  refresh();
  announceHovered(same_size);
  applyReduction();
}

// The mouse did not move, but what is under it is another cell, or none.
void Heatmap::announceHovered(bool is_still_there) {
  if (!hovered_) return;
  if (!is_still_there) hovered_.reset();
  emit cellHovered(hovered_ ? hovered_->row : -1, hovered_ ? hovered_->col : -1);
}

void Heatmap::setPlaceholder(const QString& text) {
  placeholder_label_->setText(text.isEmpty() ? tr("Nothing to show yet") : text);
}

void Heatmap::setRange(const ValueRange& range, const QString& counts) {
  parts_->range = range;
  counts_ = counts;
  refresh();
}

void Heatmap::setColormap(const std::string& name) {
  parts_->map = colormap(name);
  refresh();
}

bool Heatmap::lacksPyramid() const {
  return scene_ && reduction_ && scene_->pyramid.reduction() != *reduction_;
}

void Heatmap::applyReduction() {
  if (!lacksPyramid()) return;
  if (scene_->grid().size() <= kPooledAtOnce)
    setPyramid(Pyramid(scene_->grid(), *reduction_));
  else
    emit pyramidWanted(scene_->grid(), *reduction_);
}

void Heatmap::setPyramid(const Pyramid& pyramid) {
  if (!lacksPyramid() || pyramid.reduction() != *reduction_ ||
      !pyramid.grid().same_values(scene_->grid()))
    return;
  auto scene = std::make_shared<HeatmapScene>(*scene_);
  scene->pyramid = pyramid;
  scene_ = std::move(scene);
  refresh();
}

void Heatmap::setReduction(Reduction reduction) {
  reduction_ = reduction;
  applyReduction();
}

Reduction Heatmap::reduction() const {
  return reduction_.value_or(scene_ ? scene_->pyramid.reduction() : Reduction::max_abs);
}

QRectF Heatmap::plotArea() const { return QRectF(parts_->rect->rect()).translated(plot_->pos()); }

void Heatmap::setLeastSides(double left, double right) {
  parts_->least_left = left;
  parts_->least_right = right;
  if (!scene_) return;
  applyMargins();
  refresh();
}

std::pair<double, double> Heatmap::neededSides() const {
  return {parts_->needed_left, parts_->needed_right};
}

void Heatmap::refresh() {
  if (!scene_ || scene_->grid().empty()) return;
  plot_->xAxis->setRange(view_.left, view_.right);
  plot_->yAxis->setRange(view_.top, view_.bottom);
  placeTicks();
  placeNotes();
  placeBox();
  placeCursor();
  writeTexts();
  plot_->replot(QCustomPlot::rpQueuedReplot);
}

void Heatmap::applyPalette() {
  const QPalette colors = palette();
  const QColor text = colors.color(QPalette::Text);
  const QColor muted = colors.color(QPalette::PlaceholderText);
  plot_->setBackground(QBrush(colors.color(QPalette::Window)));
  // What is masked shows this: lighter than the paper only where the paper is dark.
  parts_->rect->setBackground(colors.color(QPalette::Base));
  for (QCPAxis* axis : parts_->rect->axes()) {
    axis->setBasePen(QPen(text, 1));
    axis->setTickPen(QPen(text, 1));
    axis->setLabelColor(text);
    axis->setTickLabelColor(text);
    axis->setLabelFont(font());
    axis->setTickLabelFont(note_label_->font());
  }
  QPalette quiet = colors;
  quiet.setColor(QPalette::WindowText, muted);
  note_label_->setPalette(quiet);
  placeholder_label_->setPalette(quiet);
  const QColor line = theme_of(colors) == Theme::dark ? QColor(255, 170, 90) : QColor(217, 95, 2);
  QColor faint = line;
  faint.setAlpha(225);
  parts_->row_line->setPen(QPen(faint, 1));
  parts_->col_line->setPen(QPen(faint, 1));
  parts_->selected->setPen(QPen(line, 2));
  parts_->selected->setBrush(Qt::NoBrush);
}

void Heatmap::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() != QEvent::PaletteChange && event->type() != QEvent::FontChange) return;
  applyPalette();
  if (!scene_) return;
  applyMargins();
  refresh();
}

// The plot follows by itself; what is left are the texts, which are cut to the width.
void Heatmap::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  if (scene_ && !scene_->grid().empty()) writeTexts();
}

}  // namespace sinkscope
