// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/panels/residual_panel.h"

#include <fmt/format.h>

#include <QCheckBox>
#include <QComboBox>
#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QSignalBlocker>
#include <QVBoxLayout>
#include <algorithm>

#include "core/number_text.h"
#include "views/heatmap/heatmap.h"
#include "views/panels/map_values.h"
#include "views/widgets/help_button.h"

namespace sinkscope {

namespace {

HeatmapAxis token_axis(const ResidualSnapshot& snapshot) {
  return {"token", snapshot.token_labels, snapshot.tokens, {}};
}

HeatmapAxis dim_axis(const ResidualSnapshot& snapshot) {
  const bool natural = snapshot.request.order == DimOrder::natural;
  return {natural ? "dimension" : "sorted dimensions (original index)", {}, snapshot.dims, {}};
}

}  // namespace

ResidualPanel::ResidualPanel(QWidget* parent)
    : Panel(parent),
      heatmap_(new Heatmap(this)),
      what_(new QComboBox(this)),
      order_(new QComboBox(this)),
      corner_(new QCheckBox(tr("First 32 × 32"), this)),
      source_text_(new QLabel(this)) {
  what_->addItem(tr("Mean |x| over the block states"), true);
  what_->addItem(tr("State after the selected layer"), false);
  order_->addItem(tr("Sorted by mean |x|, all tokens"), static_cast<int>(DimOrder::sorted));
  order_->addItem(tr("Sorted, without the first token"),
                  static_cast<int>(DimOrder::sorted_without_first));
  order_->addItem(tr("Natural order"), static_cast<int>(DimOrder::natural));
  order_->addItem(tr("Keep this order for all captures"), static_cast<int>(DimOrder::given));
  corner_->setToolTip(tr("The first 32 tokens and 32 dimensions of the order, as in 2601.22966"));
  auto* bar = new QHBoxLayout;
  for (QComboBox* box : {what_, order_}) {
    box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    box->setMinimumContentsLength(14);
    bar->addWidget(box, 1);
  }
  bar->addWidget(corner_);
  for (const char* term : {"max |x|", "first 1‰ ratio"}) bar->addWidget(new HelpButton(term, this));
  source_text_->setForegroundRole(QPalette::PlaceholderText);
  source_text_->setWordWrap(true);
  auto* layout = new QVBoxLayout(this);
  layout->addLayout(bar);
  layout->addWidget(source_text_);
  layout->addWidget(heatmap_, 1);

  for (QComboBox* box : {what_, order_})
    connect(box, &QComboBox::currentIndexChanged, this, &ResidualPanel::readControls);
  connect(corner_, &QCheckBox::toggled, this, &ResidualPanel::readControls);
  connect(heatmap_, &Heatmap::cellHovered, this,
          [this](int row, int col) { emit hovered(readOut(row, col)); });
  connect(heatmap_, &Heatmap::cellPicked, this, [this](int row, int col) {
    if (snapshot_) emit picked(readOut(row, col).cell);
  });
}

void ResidualPanel::readControls() {
  ResidualChoice choice = choice_;
  choice.averaged = what_->currentData().toBool();
  choice.order = static_cast<DimOrder>(order_->currentData().toInt());
  choice.is_corner = corner_->isChecked();
  // The order that is kept is the one on the screen when it is chosen.
  if (choice.order != DimOrder::given)
    choice.given_order.clear();
  else if (choice_.order != DimOrder::given && snapshot_)
    choice.given_order = snapshot_->full_order;
  if (choice == choice_) return;
  setChoice(choice);
  emit choiceChanged(choice_);
}

void ResidualPanel::setChoice(const ResidualChoice& choice) {
  choice_ = choice;
  const QSignalBlocker what(what_), order(order_), corner(corner_);
  what_->setCurrentIndex(what_->findData(choice.averaged));
  order_->setCurrentIndex(order_->findData(static_cast<int>(choice.order)));
  corner_->setChecked(choice.is_corner);
}

void ResidualPanel::setSnapshot(std::shared_ptr<const ResidualSnapshot> snapshot, PreparedMap map,
                                const QString& failure) {
  snapshot_ = std::move(snapshot);
  map_ = std::move(map);
  if (!snapshot_)
    map_ = {};
  else if (!map_.is_of(snapshot_->map))
    map_ = prepare(snapshot_->map);
  heatmap_->setPlaceholder(failure);
  findScale();
  showMap();
  emit colorScaleChanged();
}

std::string ResidualPanel::boxText(const ResidualSnapshot& snapshot) {
  return fmt::format("Max |x| {} (token {}, dimension {})\nFirst 1‰ ratio {:.1f} ‰ ({} of {})",
                     readable(snapshot.max_abs.value), snapshot.max_abs.token, snapshot.max_abs.dim,
                     snapshot.first_permille_ratio, snapshot.first_permille_count,
                     snapshot.full_order.size());
}

// A site has signs and gets a diverging map around 0; an average of |x| a sequential one.
void ResidualPanel::findScale() {
  const bool is_signed = snapshot_ && snapshot_->request.site.has_value();
  request_.center = is_signed ? std::optional<double>(0) : std::nullopt;
  colormap_ = is_signed ? diverging_colormap(palette()) : QStringLiteral("viridis");
  if (snapshot_) range_ = map_.ranges.range(request_);
}

QString ResidualPanel::countsText() const {
  return QString::fromStdString(summary_text(map_.ranges.summary(range_)));
}

void ResidualPanel::showMap() {
  if (!snapshot_) {
    heatmap_->setScene(nullptr);
    source_text_->clear();
    return;
  }
  auto scene = std::make_shared<HeatmapScene>();
  scene->pyramid = map_.pyramid;
  scene->range = range_;
  scene->colormap = colormap_.toStdString();
  scene->title = snapshot_->title;
  scene->rows = {"token", bare_tokens(snapshot_->token_labels), snapshot_->tokens, {}};
  scene->cols = dim_axis(*snapshot_);
  scene->box = boxText(*snapshot_);
  scene->counts = countsText().toStdString();
  heatmap_->setScene(std::move(scene));
  source_text_->setText(QString::fromStdString(snapshot_->source_text +
                                               (snapshot_->order_text.empty() ? "" : " · ") +
                                               snapshot_->order_text));
  setSelection(selection_);
  setPins(pins_);
}

ColorScale ResidualPanel::colorScale() const {
  if (!snapshot_) return {};
  const bool is_signed = snapshot_->request.site.has_value();
  return {{snapshot_->map},
          request_,
          range_,
          colormap_,
          is_signed ? tr("residual stream") : tr("mean |x| of the residual stream"),
          false,
          map_.ranges};
}

void ResidualPanel::setRangeRequest(const RangeRequest& request) {
  request_ = request;
  findScale();
  if (snapshot_) heatmap_->setRange(range_, countsText());
  emit colorScaleChanged();
}

std::optional<CellRect> ResidualPanel::zoomedTo() const { return heatmap_->zoomedTo(); }

QString ResidualPanel::valuesAsText() const {
  if (!snapshot_) return {};
  return values_table(snapshot_->map, token_axis(*snapshot_), dim_axis(*snapshot_),
                      heatmap_->view(), tr("token"));
}

void ResidualPanel::setSelection(const CellRef& selection) {
  selection_ = selection;
  if (snapshot_) heatmap_->setSelectedCell(placeOf(selection));
}

std::optional<CellAt> ResidualPanel::placeOf(const CellRef& cell) const {
  if (!snapshot_ || cell.token < 0) return std::nullopt;
  const auto after =
      std::upper_bound(snapshot_->tokens.begin(), snapshot_->tokens.end(), cell.token);
  const auto row = static_cast<int>(after - snapshot_->tokens.begin()) - 1;
  const auto dim = std::find(snapshot_->dims.begin(), snapshot_->dims.end(), cell.dim);
  if (row < 0 || dim == snapshot_->dims.end()) return std::nullopt;
  return CellAt{row, static_cast<int>(dim - snapshot_->dims.begin())};
}

void ResidualPanel::setPins(const std::vector<CellRef>& pins) {
  pins_ = pins;
  std::vector<CellAt> cells;
  for (const CellRef& pin : pins_)
    if (const auto cell = placeOf(pin)) cells.push_back(*cell);
  heatmap_->setPinnedCells(std::move(cells));
}

ReadOut ResidualPanel::readOut(int row, int col) const {
  ReadOut out;
  if (!snapshot_ || row < 0 || col < 0 || !snapshot_->map.exists(row, col)) return out;
  out.cell.token = snapshot_->tokens[static_cast<std::size_t>(row)];
  out.cell.dim = snapshot_->dims[static_cast<std::size_t>(col)];
  out.value = QString::fromStdString(readable(snapshot_->map.at(row, col)));
  const QString label = QString::fromStdString(bare_token(cell_name(token_axis(*snapshot_), row)));
  out.lines = {tr("token %1  “%2”").arg(out.cell.token).arg(label),
               tr("dimension %1").arg(out.cell.dim), tr("x = %1").arg(out.value)};
  if (!snapshot_->request.site) out.lines.back() = tr("mean |x| = %1").arg(out.value);
  if (snapshot_->tokens_per_row > 1)
    out.lines << tr("largest |x| of %1 tokens").arg(snapshot_->tokens_per_row);
  const bool is_site = snapshot_->request.site.has_value();
  if (snapshot_->tokens_per_row == 1)
    out.pin = {is_site ? PinnedCell::Quantity::residual : PinnedCell::Quantity::residual_mean,
               out.cell, is_site ? *snapshot_->request.site : ""};
  out.place = tr("%1 · t%2 d%3")
                  .arg(QString::fromStdString(snapshot_->title))
                  .arg(out.cell.token)
                  .arg(out.cell.dim);
  return out;
}

void ResidualPanel::changeEvent(QEvent* event) {
  Panel::changeEvent(event);
  if (event->type() != QEvent::PaletteChange || !snapshot_) return;
  findScale();
  heatmap_->setColormap(colormap_.toStdString());
  emit colorScaleChanged();
}

}  // namespace sinkscope
