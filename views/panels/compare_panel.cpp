// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/panels/compare_panel.h"

#include <QEvent>
#include <QGridLayout>
#include <QLabel>
#include <QToolButton>
#include <algorithm>

#include "views/heatmap/color_bar.h"
#include "views/heatmap/color_strip.h"
#include "views/heatmap/heatmap.h"
#include "views/panels/compare_link.h"
#include "views/panels/map_values.h"
#include "views/theme.h"
#include "views/widgets/help_button.h"

namespace sinkscope {

namespace {

RangeRequest first_request(MapKind kind) {
  if (kind == MapKind::norms) return {.scale = Scale::log, .center = 1.0};
  if (kind == MapKind::scores) return {RangeMode::fixed, 0, 1, Scale::linear, {}};
  return {};
}

}  // namespace

ComparePanel::ComparePanel(QWidget* parent)
    : Panel(parent),
      notes_(new QLabel(this)),
      differ_(new QLabel(tr("The ranges differ: equal colors are not equal values."), this)),
      nothing_(new QLabel(this)),
      lock_(new QToolButton(this)),
      difference_strip_(new ColorStrip(this)) {
  notes_->setWordWrap(true);
  differ_->setStyleSheet("color: #d0342c;");
  nothing_->setAlignment(Qt::AlignCenter);
  nothing_->setWordWrap(true);
  nothing_->setForegroundRole(QPalette::PlaceholderText);
  lock_->setCheckable(true);
  lock_->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  lock_->setToolTip(tr("One range for all sides, or one for each"));
  difference_strip_->setToolTip(tr("Colors of the difference"));
  auto* bar = new QHBoxLayout;
  bar->addWidget(lock_);
  bar->addWidget(differ_);
  bar->addStretch(1);
  bar->addWidget(new HelpButton("difference", this));
  grid_ = new QGridLayout;
  auto* column = new QVBoxLayout(this);
  column->addLayout(bar);
  column->addWidget(notes_);
  column->addWidget(nothing_, 1);
  column->addLayout(grid_, 1);
  connect(lock_, &QToolButton::clicked, this, &ComparePanel::setShared);
  connect(difference_strip_, &ColorStrip::rangeDragged, this, [this](double lo, double hi) {
    difference_request_ = {RangeMode::fixed, lo, hi, Scale::linear, 0.0};
    findScales();
    showRanges();
  });
  setSnapshot(nullptr);
}

std::size_t ComparePanel::mapCount() const {
  return snapshot_ ? snapshot_->sides.size() + snapshot_->differences.size() : 0;
}

ComparePanel::Shown ComparePanel::shown(std::size_t i) const {
  if (!isDifference(i)) {
    const CompareSide& side = snapshot_->sides[i];
    return {&side.map, &side.rows, &side.cols, side.title, &side};
  }
  const Difference& difference = snapshot_->differences[i - snapshot_->sides.size()];
  return {&difference.map, &difference.rows, &difference.cols, difference.text,
          &snapshot_->sides[difference.a]};
}

void ComparePanel::setSnapshot(std::shared_ptr<const CompareSnapshot> snapshot,
                               const QString& failure, PreparedComparison prepared) {
  const bool new_kind = snapshot && (!snapshot_ || snapshot_->sides.empty() ||
                                     snapshot_->sides[0].kind != snapshot->sides[0].kind);
  snapshot_ = std::move(snapshot);
  prepared_ = std::move(prepared);
  if (snapshot_ && prepared_.maps.empty()) prepared_ = prepare(*snapshot_);
  if (new_kind) request_ = first_request(snapshot_->sides[0].kind);
  difference_request_ = {.center = 0.0};
  nothing_->setText(failure.isEmpty() ? tr("Choose two or more layers, heads, runs, captures or "
                                           "models to see them side by side")
                                      : failure);
  nothing_->setVisible(!snapshot_);
  lock_->setVisible(snapshot_ != nullptr);
  arrange();
  findScales();
  showMaps();
  writeNotes();
  setSelection(selection_);
  setPins(pins_);
  emit colorScaleChanged();
}

// Sides in the first row; each difference below the side that it is about; the strip of the
// differences below the first side.
void ComparePanel::arrange() {
  while (maps_.size() < mapCount()) maps_.push_back(addMap(maps_.size()));
  for (Heatmap* map : maps_) {
    grid_->removeWidget(map);
    map->hide();
  }
  grid_->removeWidget(difference_strip_);
  difference_strip_->setVisible(snapshot_ && !snapshot_->differences.empty());
  for (std::size_t i = 0; i < mapCount(); ++i) {
    const bool below = isDifference(i);
    if (side_by_side_) {
      grid_->addWidget(maps_[i], 0, static_cast<int>(i));
      maps_[i]->show();
      continue;
    }
    const std::size_t column = below ? snapshot_->differences[i - snapshot_->sides.size()].b : i;
    grid_->addWidget(maps_[i], below ? 1 : 0, static_cast<int>(column));
    maps_[i]->show();
  }
  const int n_columns = static_cast<int>(!snapshot_      ? 0
                                         : side_by_side_ ? mapCount()
                                                         : snapshot_->sides.size());
  if (side_by_side_)
    grid_->addWidget(difference_strip_, 0, n_columns);
  else
    grid_->addWidget(difference_strip_, 1, 0, Qt::AlignLeft);
  for (int c = 0; c < grid_->columnCount(); ++c) grid_->setColumnStretch(c, c < n_columns ? 1 : 0);
}

Heatmap* ComparePanel::addMap(std::size_t i) {
  auto* map = new Heatmap(this);
  map->setMinimumSize(160, 140);
  connect(map, &Heatmap::viewChanged, this, [this, i] { linkView(i); });
  connect(map, &Heatmap::cellHovered, this, [this, i](int row, int col) {
    linkCursor(i, row, col);
    emit hovered(readOut(i, row, col));
  });
  connect(map, &Heatmap::cellPicked, this,
          [this, i](int row, int col) { emit picked(cellOf(i, row, col)); });
  return map;
}

void ComparePanel::findScales() {
  ranges_.clear();
  if (!snapshot_) return;
  if (prepared_.is_signed) request_.center = 0;
  for (std::size_t i = 0; i < snapshot_->sides.size(); ++i)
    ranges_.push_back((shared_ ? prepared_.sides : prepared_.maps[i].ranges).range(request_));
  const ValueRange zero_centered = prepared_.differences.range(difference_request_);
  ranges_.resize(mapCount(), zero_centered);
  difference_strip_->setScale(zero_centered, colormap(diverging_colormap(palette()).toStdString()),
                              prepared_.differences.summary(zero_centered));
}

std::string ComparePanel::sideColormap() const {
  const bool centered = prepared_.is_signed || snapshot_->sides[0].kind == MapKind::norms;
  return centered ? diverging_colormap(palette()).toStdString() : "viridis";
}

void ComparePanel::showMaps() {
  for (std::size_t i = 0; i < mapCount(); ++i) {
    const Shown map = shown(i);
    const MapKind kind = map.labels->kind;
    auto scene = std::make_shared<HeatmapScene>();
    scene->pyramid = prepared_.maps[i].pyramid;
    scene->range = ranges_[i];
    scene->colormap =
        isDifference(i) ? diverging_colormap(palette()).toStdString() : sideColormap();
    scene->title = map.title;
    scene->rows = {axis_title(kind, true), {}, *map.rows, {}};
    scene->cols = {axis_title(kind, false), {}, *map.cols, {}};
    if (map.labels->rows == *map.rows) scene->rows.labels = bare_tokens(map.labels->row_labels);
    if (map.labels->cols == *map.cols) scene->cols.labels = bare_tokens(map.labels->col_labels);
    maps_[i]->setScene(std::move(scene));
  }
  showRanges();
}

void ComparePanel::showRanges() {
  const bool differ =
      snapshot_ && std::any_of(ranges_.begin(), ranges_.begin() + snapshot_->sides.size(),
                               [&](const ValueRange& range) { return range != ranges_[0]; });
  differ_->setVisible(differ);
  lock_->setChecked(shared_);
  lock_->setIcon(lock_icon(shared_, palette().color(QPalette::ButtonText)));
  lock_->setText(shared_ ? tr("Shared range") : tr("Each its own range"));
  for (std::size_t i = 0; i < mapCount(); ++i)
    maps_[i]->setRange(ranges_[i], QString::fromStdString(
                                       summary_text(prepared_.maps[i].ranges.summary(ranges_[i]))));
}

void ComparePanel::writeNotes() {
  QStringList lines;
  if (snapshot_)
    for (const std::string& note : snapshot_->notes) lines << QString::fromStdString(note);
  notes_->setText(lines.join('\n'));
  notes_->setVisible(!lines.isEmpty());
}

QString ComparePanel::notesText() const { return notes_->text(); }

void ComparePanel::setSideBySide(bool side_by_side) {
  side_by_side_ = side_by_side;
  difference_strip_->setMaximumWidth(side_by_side ? 110 : QWIDGETSIZE_MAX);
  arrange();
}

void ComparePanel::setShared(bool shared) {
  shared_ = shared;
  findScales();
  showRanges();
  emit colorScaleChanged();
}

ColorScale ComparePanel::colorScale() const {
  if (!snapshot_) return {};
  ColorScale scale{{}, request_, ranges_[0], QString::fromStdString(sideColormap()), {}, !shared_};
  scale.ranges = shared_ ? prepared_.sides : prepared_.maps.front().ranges;
  scale.grids.assign(scale.ranges.grids().begin(), scale.ranges.grids().end());
  scale.quantity = shared_ ? tr("all sides")
                           : tr("%1 alone").arg(QString::fromStdString(snapshot_->sides[0].title));
  return scale;
}

void ComparePanel::setRangeRequest(const RangeRequest& request) {
  request_ = request;
  if (snapshot_ && snapshot_->sides[0].kind == MapKind::norms) request_.center = 1;
  findScales();
  showRanges();
  emit colorScaleChanged();
}

std::optional<CellRect> ComparePanel::zoomedTo() const {
  return mapCount() > 0 ? maps_.front()->zoomedTo() : std::nullopt;
}

QString ComparePanel::valuesAsText() const {
  QString text;
  for (std::size_t i = 0; i < mapCount(); ++i) {
    const Shown map = shown(i);
    text += QString::fromStdString(map.title) + QLatin1Char('\n') +
            values_table(*map.grid, {{}, {}, *map.rows, {}}, {{}, {}, *map.cols, {}},
                         maps_[i]->view(), axis_title(map.labels->kind, true));
  }
  return text;
}

void ComparePanel::changeEvent(QEvent* event) {
  Panel::changeEvent(event);
  if (event->type() != QEvent::PaletteChange || !snapshot_) return;
  findScales();
  for (std::size_t i = 0; i < mapCount(); ++i)
    maps_[i]->setColormap(isDifference(i) ? diverging_colormap(palette()).toStdString()
                                          : sideColormap());
  emit colorScaleChanged();
}

}  // namespace sinkscope
