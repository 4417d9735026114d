// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/panels/overview_panel.h"

#include <QComboBox>
#include <QGridLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QSignalBlocker>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "core/number_text.h"
#include "core/site_name.h"
#include "views/heatmap/heatmap.h"
#include "views/widgets/help_button.h"
#include "views/widgets/line_plot.h"

namespace sinkscope {
namespace {

constexpr int kScores = 3;  // items of the choice that are scores; mechanisms follow

PlotLine curve(const QString& name, const DepthLine& line) {
  return {name, {line.positions.begin(), line.positions.end()}, line.values};
}

}  // namespace

OverviewPanel::OverviewPanel(QWidget* parent)
    : Panel(parent),
      heatmap_(new Heatmap(this)),
      kind_(new QComboBox(this)),
      stream_(new LinePlot(this)),
      score_(new LinePlot(this)),
      kurtosis_(new LinePlot(this)) {
  kind_->addItem(tr("Sink score (Gu)"), static_cast<int>(ScoreKind::gu));
  kind_->addItem(tr("First-token score, row 0 included"), static_cast<int>(ScoreKind::with_row0));
  kind_->addItem(tr("First-token score, row 0 excluded"),
                 static_cast<int>(ScoreKind::without_row0));
  auto* bar = new QHBoxLayout;
  bar->addWidget(new QLabel(tr("Map:"), this));
  bar->addWidget(kind_);
  bar->addWidget(new HelpButton("sink score", this));
  bar->addWidget(new HelpButton("first-token score", this));
  bar->addStretch(1);
  auto* lines = new QHBoxLayout;
  const std::pair<LinePlot*, const char*> plots[] = {
      {stream_, "max |x|"}, {score_, "sink score"}, {kurtosis_, "kurtosis"}};
  for (const auto& [plot, term] : plots) {
    auto* both = new QGridLayout;  // one above the other: the plot keeps its width
    both->addWidget(plot, 0, 0);
    both->addWidget(new HelpButton(term, this), 0, 0, Qt::AlignTop | Qt::AlignRight);
    lines->addLayout(both, 1);
  }
  auto* layout = new QVBoxLayout(this);
  layout->addLayout(bar);
  layout->addWidget(heatmap_, 3);
  layout->addLayout(lines, 2);
  heatmap_->setPlaceholder(tr("No softmax attention is recorded in this capture."));

  connect(kind_, &QComboBox::currentIndexChanged, this, [this] {
    showMap();
    if (mechanism() == nullptr) emit scoreKindChanged(scoreKind());
  });
  connect(heatmap_, &Heatmap::cellHovered, this,
          [this](int row, int col) { emit hovered(readOut(row, col)); });
  connect(heatmap_, &Heatmap::cellPicked, this, [this](int row, int col) {
    if (snapshot_ != nullptr) emit picked(readOut(row, col).cell);
  });
  connect(score_, &LinePlot::picked, this, [this](double layer) {
    CellRef cell;
    cell.layer = static_cast<int>(layer);
    emit picked(cell);
  });
  for (LinePlot* plot : {stream_, kurtosis_})
    connect(plot, &LinePlot::picked, this, [this](double state) {
      CellRef cell;
      cell.layer = std::max(0, static_cast<int>(state) - 1);  // state i+1 is behind block i
      emit picked(cell);
    });
}

ScoreKind OverviewPanel::scoreKind() const {
  return kind_->currentIndex() < kScores ? static_cast<ScoreKind>(kind_->currentData().toInt())
                                         : ScoreKind::gu;
}

const MechanismMap* OverviewPanel::mechanism() const {
  const int index = kind_->currentIndex() - kScores;
  const bool is_one =
      snapshot_ != nullptr && index >= 0 && index < static_cast<int>(snapshot_->mechanisms.size());
  return is_one ? &snapshot_->mechanisms[static_cast<std::size_t>(index)] : nullptr;
}

const Grid& OverviewPanel::grid() const {
  const MechanismMap* map = mechanism();
  return map != nullptr ? map->values : snapshot_->score(scoreKind());
}

const std::vector<int>& OverviewPanel::layers() const {
  const MechanismMap* map = mechanism();
  return map != nullptr ? map->layers : snapshot_->layers;
}

// Norms of states are no shares: their own range, whatever shares are shown in.
RangeRequest OverviewPanel::rangeRequest() const {
  const MechanismMap* map = mechanism();
  return map == nullptr || map->is_share || request_.mode != RangeMode::fixed
             ? request_
             : RangeRequest{.mode = RangeMode::min_max};
}

QString OverviewPanel::mapTitle() const {
  const MechanismMap* map = mechanism();
  return QString::fromStdString(
      map != nullptr ? map->convention : describe(scoreKind(), snapshot_->request.options.gu_key));
}

// What this capture has beyond scores; a choice that it has too stays.
void OverviewPanel::offerMechanisms() {
  const QSignalBlocker blocker(kind_);
  const QString chosen = kind_->currentText();
  while (kind_->count() > kScores) kind_->removeItem(kScores);
  if (snapshot_ != nullptr)
    for (const MechanismMap& map : snapshot_->mechanisms)
      kind_->addItem(QString::fromStdString(map.name));
  kind_->setCurrentIndex(std::max(0, kind_->findText(chosen)));
}

void OverviewPanel::setScoreKind(ScoreKind kind) {
  const QSignalBlocker blocker(kind_);
  kind_->setCurrentIndex(kind_->findData(static_cast<int>(kind)));
  showMap();
}

void OverviewPanel::setSnapshot(std::shared_ptr<const OverviewSnapshot> snapshot) {
  snapshot_ = std::move(snapshot);
  offerMechanisms();
  showMap();
  showLines();
}

std::optional<FigureRequest> OverviewPanel::figureRequest() const {
  const MechanismMap* map = mechanism();
  if (map == nullptr) return std::nullopt;
  FigureRequest request;
  request.inputs = {snapshot_->facts.path + "::" + snapshot_->facts.run};
  request.kind = "sink-heads";
  request.score = map->name;
  request.range = rangeRequest();
  request.range->center.reset();
  request.scale = request.range->scale;
  if (const std::optional<CellRect> zoom = zoomedTo())
    request.view = FigureView{static_cast<int>(zoom->top), static_cast<int>(zoom->bottom),
                              static_cast<int>(zoom->left), static_cast<int>(zoom->right)};
  return request;
}

void OverviewPanel::showMap() {
  if (snapshot_ == nullptr || grid().empty()) {
    heatmap_->setScene(nullptr);
    emit colorScaleChanged();
    return;
  }
  auto scene = std::make_shared<HeatmapScene>();
  scene->pyramid = Pyramid(grid());
  scene->range = find_range(grid(), rangeRequest());
  scene->title = mapTitle().toStdString();
  scene->rows.title = "head";
  scene->cols.title = "layer";
  scene->cols.indices = layers();
  if (const MechanismMap* map = mechanism()) {
    scene->rows.title = map->row_title;
    scene->rows.labels = map->row_labels;
    scene->cols.title = map->col_title;
    scene->cols.labels = map->col_labels;
  }
  heatmap_->setScene(std::move(scene));
  setSelection(selection_);
  setPins(pins_);
  emit colorScaleChanged();
}

void OverviewPanel::showLines() {
  if (snapshot_ == nullptr) {
    for (LinePlot* plot : {stream_, score_, kurtosis_}) plot->setLines({}, {}, {});
    return;
  }
  const QString state = tr("block state");
  const QString which = QString::fromStdString(snapshot_->stream_text);
  stream_->setLines(
      which.isEmpty() ? tr("Residual stream over depth") : tr("Stream over depth: %1").arg(which),
      state,
      {curve(tr("max |x|"), snapshot_->max_abs), curve(tr("median |x|"), snapshot_->median_abs)});
  score_->setLines(tr("Sink score over depth"), tr("layer"),
                   {curve(tr("mean head"), snapshot_->mean_score),
                    curve(tr("largest head"), snapshot_->max_score)});
  const QString flavor = QString::fromStdString(snapshot_->kurtosis.name);
  kurtosis_->setLines(flavor.isEmpty() ? tr("Kurtosis") : flavor.at(0).toUpper() + flavor.mid(1),
                      state, {curve(flavor, snapshot_->kurtosis)});
}

ColorScale OverviewPanel::colorScale() const {
  if (snapshot_ == nullptr || grid().empty()) return {};
  return {{grid()},
          rangeRequest(),
          find_range(grid(), rangeRequest()),
          QStringLiteral("viridis"),
          mechanism() != nullptr ? QString::fromStdString(mechanism()->name) : tr("sink score")};
}

void OverviewPanel::setRangeRequest(const RangeRequest& request) {
  request_ = request;
  showMap();
}

void OverviewPanel::setSelection(const CellRef& selection) {
  selection_ = selection;
  if (snapshot_ == nullptr) return;
  const auto& layers = this->layers();
  const auto at = std::find(layers.begin(), layers.end(), selection.layer);
  const bool is_there =
      has_heads() && at != layers.end() && selection.head >= 0 && selection.head < grid().rows();
  heatmap_->setSelectedCell(
      is_there ? std::optional(CellAt{selection.head, static_cast<int>(at - layers.begin())})
               : std::nullopt);
  score_->setMark(selection.layer);
  for (LinePlot* plot : {stream_, kurtosis_})
    plot->setMark(selection.layer < 0 ? std::nan("") : selection.layer + 1);
}

void OverviewPanel::setPins(const std::vector<CellRef>& pins) {
  pins_ = pins;
  std::vector<CellAt> cells;
  if (snapshot_ != nullptr)
    for (const CellRef& pin : pins_) {
      const auto& layers = this->layers();
      const auto at = std::find(layers.begin(), layers.end(), pin.layer);
      if (has_heads() && at != layers.end() && pin.head >= 0 && pin.head < grid().rows())
        cells.push_back({pin.head, static_cast<int>(at - layers.begin())});
    }
  heatmap_->setPinnedCells(std::move(cells));
}

ReadOut OverviewPanel::readOut(int row, int col) const {
  ReadOut out;
  if (snapshot_ == nullptr || row < 0 || col < 0) return out;
  const MechanismMap* map = mechanism();
  out.cell.layer = layers()[static_cast<std::size_t>(col)];
  if (has_heads()) out.cell.head = row;
  QString layer =
      QString::fromStdString(layer_label(out.cell.layer, snapshot_->facts.model.n_layers));
  if (map != nullptr && !map->col_labels.empty())
    layer = QString::fromStdString(map->col_labels[static_cast<std::size_t>(col)]);
  const QString line = has_heads()
                           ? tr("head %1").arg(row)
                           : QString::fromStdString(map->row_labels[static_cast<std::size_t>(row)]);
  out.value = QString::fromStdString(readable(grid().at(row, col)));
  out.place = has_heads() ? tr("L%1H%2 · %3").arg(out.cell.layer).arg(row).arg(kind_->currentText())
                          : layer + QStringLiteral(" · ") + line;
  if (map == nullptr) out.pin = {PinnedCell::Quantity::score, out.cell, {}, scoreKind()};
  out.lines = {layer, line, out.value};
  return out;
}

std::optional<CellRect> OverviewPanel::zoomedTo() const { return heatmap_->zoomedTo(); }

QString OverviewPanel::valuesAsText() const {
  if (snapshot_ == nullptr) return {};
  const MechanismMap* map = mechanism();
  QString text = map != nullptr ? QString::fromStdString(map->row_title) : QStringLiteral("head");
  for (std::size_t col = 0; col < layers().size(); ++col)
    text += map != nullptr && !map->col_labels.empty()
                ? QLatin1Char('\t') + QString::fromStdString(map->col_labels[col])
                : QStringLiteral("\tL%1").arg(layers()[col]);
  text += QLatin1Char('\n');
  for (int row = 0; row < grid().rows(); ++row) {
    text += map != nullptr && !map->row_labels.empty()
                ? QString::fromStdString(map->row_labels[static_cast<std::size_t>(row)])
                : QString::number(row);
    for (int col = 0; col < grid().cols(); ++col)
      text += QLatin1Char('\t') + QString::fromStdString(csv_number(grid().at(row, col)));
    text += QLatin1Char('\n');
  }
  return text;
}

}  // namespace sinkscope
