// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/panels/norms_panel.h"

#include <QComboBox>
#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QScrollArea>
#include <QSignalBlocker>
#include <QVBoxLayout>
#include <algorithm>

#include "core/number_text.h"
#include "core/site_name.h"
#include "views/heatmap/heatmap.h"
#include "views/panels/map_values.h"
#include "views/widgets/help_button.h"

namespace sinkscope {

namespace {

constexpr int kStripHeight = 190;  // at least, with its title and ticks

HeatmapAxis layer_axis(const NormStrip& strip) { return {"layer", {}, strip.layers, {}}; }

HeatmapAxis dim_axis(const NormStrip& strip) {
  return {"dimension (★ deviates most)", {}, {}, strip.starred};
}

}  // namespace

NormsPanel::NormsPanel(QWidget* parent)
    : Panel(parent),
      request_{.mode = RangeMode::percentile, .scale = Scale::log, .center = 1.0},
      view_(new QComboBox(this)),
      view_text_(new QLabel(this)),
      nothing_(new QLabel(this)) {
  view_->addItem(tr("Gain"), static_cast<int>(GainView::gain));
  view_->addItem(tr("Gain / median of its layer"), static_cast<int>(GainView::over_median));
  auto* bar = new QHBoxLayout;
  bar->addWidget(view_);
  bar->addWidget(view_text_, 1);
  bar->addWidget(new HelpButton("norm gain", this));
  view_text_->setForegroundRole(QPalette::PlaceholderText);
  nothing_->setForegroundRole(QPalette::PlaceholderText);
  nothing_->setAlignment(Qt::AlignCenter);
  nothing_->setWordWrap(true);

  auto* inside = new QWidget;
  column_ = new QVBoxLayout(inside);
  column_->setContentsMargins(0, 0, 0, 0);
  auto* scroll = new QScrollArea(this);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setWidgetResizable(true);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  scroll->setWidget(inside);
  column_->addWidget(nothing_);
  auto* layout = new QVBoxLayout(this);
  layout->addLayout(bar);
  layout->addWidget(scroll, 1);
  connect(view_, &QComboBox::currentIndexChanged, this,
          [this] { emit viewAsked(static_cast<GainView>(view_->currentData().toInt())); });
  setSnapshot(nullptr);
}

void NormsPanel::setSnapshot(std::shared_ptr<const NormsSnapshot> snapshot,
                             const QString& failure) {
  snapshot_ = std::move(snapshot);
  const bool nothing = !snapshot_ || snapshot_->strips.empty();
  nothing_->setText(failure.isEmpty() ? tr("No norm with a gain to show") : failure);
  nothing_->setVisible(nothing);
  showStrips();
  setSelection(selection_);
  setPins(pins_);
  emit colorScaleChanged();
}

std::vector<Grid> NormsPanel::grids() const {
  std::vector<Grid> all;
  if (snapshot_)
    for (const NormStrip& strip : snapshot_->strips) all.push_back(strip.map);
  return all;
}

Heatmap* NormsPanel::addStrip(std::size_t i) {
  auto* heatmap = new Heatmap;
  heatmap->setMinimumHeight(kStripHeight);
  column_->addWidget(heatmap, 1);
  connect(heatmap, &Heatmap::viewChanged, this, [this, i] { linkView(i); });
  connect(heatmap, &Heatmap::cellHovered, this, [this, i](int row, int col) {
    linkCursor(i, row, col);
    emit hovered(readOut(i, row, col));
  });
  connect(heatmap, &Heatmap::cellPicked, this,
          [this, i](int row, int col) { emit picked(readOut(i, row, col).cell); });
  return heatmap;
}

void NormsPanel::showStrips() {
  const std::size_t n = snapshot_ ? snapshot_->strips.size() : 0;
  while (strips_.size() < n) strips_.push_back(addStrip(strips_.size()));
  for (std::size_t i = 0; i < strips_.size(); ++i) strips_[i]->setVisible(i < n);
  if (!snapshot_) return;
  const QSignalBlocker blocker(view_);
  view_->setCurrentIndex(view_->findData(static_cast<int>(snapshot_->request.view)));
  view_text_->setText(QString::fromStdString(snapshot_->title + " · " + snapshot_->view_text));
  range_ = find_range(grids(), request_);
  for (std::size_t i = 0; i < n; ++i) {
    const NormStrip& strip = snapshot_->strips[i];
    auto scene = std::make_shared<HeatmapScene>();
    scene->pyramid = Pyramid(strip.map, Reduction::from_one);
    scene->range = range_;
    scene->colormap = diverging_colormap(palette()).toStdString();
    scene->title = strip.title;
    scene->rows = layer_axis(strip);
    scene->cols = dim_axis(strip);
    for (const NormStrip::Box& box : strip.boxes)
      scene->notes.push_back({box.row, box.dim, readable(box.value)});
    scene->counts = counts_text({&strip.map, 1}, range_).toStdString();
    strips_[i]->setScene(std::move(scene));
  }
  double left = 0, right = 0;
  for (std::size_t i = 0; i < n; ++i) {
    left = std::max(left, strips_[i]->neededSides().first);
    right = std::max(right, strips_[i]->neededSides().second);
  }
  for (Heatmap* strip : strips_) strip->setLeastSides(left, right);
}

void NormsPanel::linkView(std::size_t from) {
  if (!snapshot_ || from >= snapshot_->strips.size()) return;
  const NormStrip& source = snapshot_->strips[from];
  const CellRect view = strips_[from]->view();
  for (std::size_t i = 0; i < snapshot_->strips.size(); ++i) {
    const NormStrip& strip = snapshot_->strips[i];
    if (i == from || strip.map.cols() != source.map.cols()) continue;
    const bool same_rows = strip.layers == source.layers;
    const CellRect own = strips_[i]->view();
    strips_[i]->setView({same_rows ? view.top : own.top, view.left,
                         same_rows ? view.bottom : own.bottom, view.right});
  }
}

void NormsPanel::linkCursor(std::size_t from, int row, int col) {
  if (!snapshot_ || from >= snapshot_->strips.size()) return;
  const NormStrip& source = snapshot_->strips[from];
  for (std::size_t i = 0; i < snapshot_->strips.size(); ++i) {
    const std::vector<int>& layers = snapshot_->strips[i].layers;
    const auto same =
        row < 0 ? layers.end() : std::find(layers.begin(), layers.end(), source.layers[row]);
    const bool shown = same != layers.end() && col < snapshot_->strips[i].map.cols() &&
                       snapshot_->strips[i].map.cols() == source.map.cols();
    strips_[i]->setCursorCell(
        shown ? std::optional(CellAt{static_cast<int>(same - layers.begin()), col}) : std::nullopt);
  }
}

ColorScale NormsPanel::colorScale() const {
  if (!snapshot_ || snapshot_->strips.empty()) return {};
  return {grids(), request_, range_, diverging_colormap(palette()),
          QString::fromStdString(snapshot_->view_text)};
}

void NormsPanel::setRangeRequest(const RangeRequest& request) {
  request_ = request;
  request_.center = 1.0;
  if (snapshot_) {
    range_ = find_range(grids(), request_);
    for (std::size_t i = 0; i < snapshot_->strips.size(); ++i)
      strips_[i]->setRange(range_, counts_text({&snapshot_->strips[i].map, 1}, range_));
  }
  emit colorScaleChanged();
}

std::optional<CellRect> NormsPanel::zoomedTo() const {
  return snapshot_ && !snapshot_->strips.empty() ? strips_.front()->zoomedTo() : std::nullopt;
}

QString NormsPanel::valuesAsText() const {
  QString text;
  if (!snapshot_) return text;
  for (std::size_t i = 0; i < snapshot_->strips.size(); ++i) {
    const NormStrip& strip = snapshot_->strips[i];
    text += QString::fromStdString(strip.role) + QLatin1Char('\n') +
            values_table(strip.map, layer_axis(strip), dim_axis(strip), strips_[i]->view(),
                         tr("layer"));
  }
  return text;
}

void NormsPanel::setSelection(const CellRef& selection) {
  selection_ = selection;
  if (!snapshot_) return;
  for (std::size_t i = 0; i < snapshot_->strips.size(); ++i)
    strips_[i]->setSelectedCell(placeOf(snapshot_->strips[i], selection));
}

std::optional<CellAt> NormsPanel::placeOf(const NormStrip& strip, const CellRef& cell) const {
  const auto layer = std::find(strip.layers.begin(), strip.layers.end(), cell.layer);
  if (layer == strip.layers.end() || cell.layer < 0 || cell.dim < 0 || cell.dim >= strip.map.cols())
    return std::nullopt;
  return CellAt{static_cast<int>(layer - strip.layers.begin()), cell.dim};
}

void NormsPanel::setPins(const std::vector<CellRef>& pins) {
  pins_ = pins;
  if (!snapshot_) return;
  for (std::size_t i = 0; i < snapshot_->strips.size(); ++i) {
    std::vector<CellAt> cells;
    for (const CellRef& pin : pins_)
      if (const auto cell = placeOf(snapshot_->strips[i], pin)) cells.push_back(*cell);
    strips_[i]->setPinnedCells(std::move(cells));
  }
}

ReadOut NormsPanel::readOut(std::size_t i, int row, int col) const {
  ReadOut out;
  if (!snapshot_ || row < 0 || col < 0 || i >= snapshot_->strips.size()) return out;
  const NormStrip& strip = snapshot_->strips[i];
  out.cell.layer = strip.layers[static_cast<std::size_t>(row)];
  out.cell.dim = col;
  out.value = QString::fromStdString(readable(strip.map.at(row, col)));
  const QString layer =
      out.cell.layer < 0 ? tr("after the last block")
                         : QString::fromStdString(layer_label(out.cell.layer, snapshot_->n_layers));
  out.lines = {
      QString::fromStdString(strip.title), layer, tr("dimension %1").arg(col),
      QStringLiteral("|%1| = %2")
          .arg(snapshot_->request.view == GainView::gain ? tr("gain") : tr("gain / median"))
          .arg(out.value)};
  const bool is_gate = is_gate_role(strip.role);
  if (is_gate) out.lines.back() = tr("mean gate = %1").arg(out.value);
  if (snapshot_->request.view == GainView::gain && !is_gate)
    out.pin = {PinnedCell::Quantity::gain, out.cell, strip.role};
  out.place =
      tr("%1 · L%2 d%3").arg(QString::fromStdString(strip.role)).arg(out.cell.layer).arg(col);
  return out;
}

void NormsPanel::changeEvent(QEvent* event) {
  Panel::changeEvent(event);
  if (event->type() != QEvent::PaletteChange) return;
  for (Heatmap* strip : strips_) strip->setColormap(diverging_colormap(palette()).toStdString());
  emit colorScaleChanged();
}

}  // namespace sinkscope
