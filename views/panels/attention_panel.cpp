// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/panels/attention_panel.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QSignalBlocker>
#include <QStackedWidget>
#include <QTimer>
#include <QVBoxLayout>
#include <algorithm>

#include "core/number_text.h"
#include "core/site_name.h"
#include "views/heatmap/heatmap.h"
#include "views/panels/map_values.h"
#include "views/theme.h"
#include "views/widgets/help_button.h"
#include "views/widgets/key_mass_strip.h"
#include "views/widgets/thumbnail_grid.h"

namespace sinkscope {
namespace {

constexpr double kMostCopiedCells = 1e6;

// The entries of the first list, in its order.
struct What {
  const char* text;
  bool is_grid;
  Combine combine;
  bool all_layers, one_head = false;
};
constexpr What kWhat[] = {
    {QT_TRANSLATE_NOOP("sinkscope::AttentionPanel", "One head"), false, Combine::single, false},
    {QT_TRANSLATE_NOOP("sinkscope::AttentionPanel", "Mean over the layer's heads"), false,
     Combine::mean, false},
    {QT_TRANSLATE_NOOP("sinkscope::AttentionPanel", "Largest over the layer's heads"), false,
     Combine::max, false},
    {QT_TRANSLATE_NOOP("sinkscope::AttentionPanel", "Mean of the head over all layers"), false,
     Combine::mean, true, true},
    {QT_TRANSLATE_NOOP("sinkscope::AttentionPanel", "Largest of the head over all layers"), false,
     Combine::max, true, true},
    {QT_TRANSLATE_NOOP("sinkscope::AttentionPanel", "Mean over all layers and heads"), false,
     Combine::mean, true},
    {QT_TRANSLATE_NOOP("sinkscope::AttentionPanel", "Largest over all layers and heads"), false,
     Combine::max, true},
    {QT_TRANSLATE_NOOP("sinkscope::AttentionPanel", "All heads of all layers"), true,
     Combine::single, false},
};

int what_index(const AttentionChoice& choice) {
  if (choice.is_grid) return std::size(kWhat) - 1;
  if (choice.combine == Combine::single) return 0;
  const auto found = std::find_if(std::begin(kWhat), std::end(kWhat), [&](const What& what) {
    return what.combine == choice.combine && what.all_layers == choice.all_layers &&
           what.one_head == (choice.all_layers && choice.one_head);
  });
  return static_cast<int>(found - std::begin(kWhat));
}

// The row or column that holds a position; −1 before the first.
int place_in(const std::vector<int>& positions, int position) {
  const auto after = std::upper_bound(positions.begin(), positions.end(), position);
  return static_cast<int>(after - positions.begin()) - 1;
}

// The token at a place of an axis, as a read-out names it.
QString token_line(const QString& name, const AttentionSnapshot& map, int position) {
  const std::string& label = map.facts.input.token_text[static_cast<std::size_t>(position)];
  const QString text =
      label.empty() ? QString()
                    : QStringLiteral("  “%1”").arg(QString::fromStdString(bare_token(label)));
  return QStringLiteral("%1 %2%3").arg(name).arg(position).arg(text);
}

}  // namespace

AttentionPanel::AttentionPanel(QWidget* parent)
    : Panel(parent),
      heatmap_(new Heatmap(this)),
      key_mass_(new KeyMassStrip(this)),
      grid_(new ThumbnailGrid(this)),
      stack_(new QStackedWidget(this)),
      what_(new QComboBox(this)),
      view_(new QComboBox(this)),
      source_(new QComboBox(this)),
      source_text_(new QLabel(this)) {
  build();
  for (QComboBox* box : {what_, view_, source_})
    connect(box, &QComboBox::currentIndexChanged, this, &AttentionPanel::readControls);
  connect(heatmap_, &Heatmap::cellHovered, this,
          [this](int row, int col) { emit hovered(readOut(row, col)); });
  connect(heatmap_, &Heatmap::cellPicked, this, [this](int row, int col) {
    if (row >= 0 && snapshot_ != nullptr) emit picked(readOut(row, col).cell);
  });
  connect(heatmap_, &Heatmap::viewChanged, this, &AttentionPanel::alignKeyMass);
  connect(key_mass_, &KeyMassStrip::columnPicked, this, [this](int column) {
    CellRef cell;
    cell.key = cell.token = snapshot_->keys[static_cast<std::size_t>(column)];
    emit picked(cell);
  });
  connect(grid_, &ThumbnailGrid::hovered, this,
          [this](int slot, int head) { emit hovered(tileReadOut(slot, head)); });
  connect(grid_, &ThumbnailGrid::headPicked, this, [this](int slot, int head) {
    emit picked(tileReadOut(slot, head).cell);
    AttentionChoice one = choice_;
    one.is_grid = false;
    one.combine = Combine::single;
    setChoice(one);
    emit choiceChanged(choice_);
  });
}

void AttentionPanel::build() {
  for (const What& what : kWhat) what_->addItem(tr(what.text));
  view_->addItem(tr("Raw"), static_cast<int>(AttentionView::raw));
  view_->addItem(tr("Sink removed, renormalized"), static_cast<int>(AttentionView::sink_removed));
  source_->addItem(tr("Best recorded"), static_cast<int>(AttentionSource::automatic));
  source_->addItem(tr("Recorded map"), static_cast<int>(AttentionSource::pattern));
  source_->addItem(tr("First 64 tokens"), static_cast<int>(AttentionSource::window));
  source_->addItem(tr("Thumbnail"), static_cast<int>(AttentionSource::thumbnail));
  auto* bar = new QHBoxLayout;
  for (QComboBox* box : {what_, view_, source_}) {
    box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    box->setMinimumContentsLength(12);
    bar->addWidget(box, 1);
  }
  bar->insertWidget(2, new HelpButton("sink removed", this));
  bar->addWidget(new HelpButton("attention probability", this));
  source_text_->setFont(caption_font(font()));
  source_text_->setForegroundRole(QPalette::PlaceholderText);
  source_text_->setWordWrap(true);

  auto* one = new QWidget(this);
  auto* one_layout = new QVBoxLayout(one);
  one_layout->setContentsMargins(0, 0, 0, 0);
  one_layout->setSpacing(2);
  one_layout->addWidget(heatmap_, 1);
  one_layout->addWidget(key_mass_);
  stack_->addWidget(one);
  stack_->addWidget(grid_);
  auto* layout = new QVBoxLayout(this);
  layout->addLayout(bar);
  layout->addWidget(source_text_);
  layout->addWidget(stack_, 1);
}

void AttentionPanel::readControls() {
  const What& what = kWhat[std::max(0, what_->currentIndex())];
  const AttentionChoice choice = {what.is_grid,
                                  what.combine,
                                  what.all_layers,
                                  static_cast<AttentionView>(view_->currentData().toInt()),
                                  static_cast<AttentionSource>(source_->currentData().toInt()),
                                  what.one_head};
  if (choice == choice_) return;
  setChoice(choice);
  emit choiceChanged(choice_);
}

void AttentionPanel::setChoice(const AttentionChoice& choice) {
  const bool opens_grid = choice.is_grid && !choice_.is_grid;
  choice_ = choice;
  if (opens_grid) showThumbnailRange();
  const QSignalBlocker what(what_), view(view_), source(source_);
  what_->setCurrentIndex(what_index(choice));
  view_->setCurrentIndex(view_->findData(static_cast<int>(choice.view)));
  source_->setCurrentIndex(source_->findData(static_cast<int>(choice.source)));
  view_->setEnabled(!choice.is_grid);
  source_->setEnabled(!choice.is_grid);
  stack_->setCurrentIndex(choice.is_grid ? 1 : 0);
  if (choice.is_grid && thumbnails_ != nullptr)
    source_text_->setText(tr("%1 heads · thumbnails: largest probability of each cell of about %2 "
                             "token(s); click one to see it whole")
                              .arg(thumbnails_->scores.size())
                              .arg(thumbnails_->positions_per_cell));
  else
    source_text_->setText(snapshot_ == nullptr ? QString()
                                               : QString::fromStdString(snapshot_->source_text));
  emit colorScaleChanged();
}

void AttentionPanel::setSnapshot(std::shared_ptr<const AttentionSnapshot> snapshot, PreparedMap map,
                                 const QString& failure) {
  snapshot_ = std::move(snapshot);
  map_ = std::move(map);
  if (snapshot_ == nullptr)
    map_ = {};
  else if (!map_.is_of(snapshot_->map))
    map_ = prepare(snapshot_->map);
  heatmap_->setPlaceholder(failure);
  showMap();
  setChoice(choice_);
}

void AttentionPanel::showMap() {
  if (snapshot_ == nullptr) {
    heatmap_->setScene(nullptr);
    key_mass_->setValues({});
    return;
  }
  auto scene = std::make_shared<HeatmapScene>();
  scene->pyramid = map_.pyramid;
  scene->range = map_.ranges.range(request_);
  scene->counts = summary_text(map_.ranges.summary(scene->range));
  scene->title = snapshot_->title;
  scene->rows = {"query", bare_tokens(snapshot_->query_labels), snapshot_->queries, {}};
  scene->cols = {"key", bare_tokens(snapshot_->key_labels), snapshot_->keys, {}};
  heatmap_->setScene(std::move(scene));
  std::vector<double> mass;
  for (std::size_t c = 0; c < snapshot_->keys.size(); ++c) {
    const auto begin = static_cast<std::size_t>(snapshot_->keys[c]);
    const auto end = c + 1 < snapshot_->keys.size()
                         ? static_cast<std::size_t>(snapshot_->keys[c + 1])
                         : std::min(snapshot_->key_mass.size(),
                                    begin + static_cast<std::size_t>(snapshot_->cell_size));
    mass.push_back(
        *std::max_element(snapshot_->key_mass.begin() + static_cast<std::ptrdiff_t>(begin),
                          snapshot_->key_mass.begin() + static_cast<std::ptrdiff_t>(end)));
  }
  key_mass_->setValues(std::move(mass));
  alignKeyMass();
  setSelection(selection_);
  setPins(pins_);
}

void AttentionPanel::alignKeyMass() {
  const QRectF area = heatmap_->plotArea();
  const CellRect view = heatmap_->view();
  key_mass_->setColumns(area.left(), area.right(), view.left, view.right);
}

// The plot takes its size only when it is laid out.
void AttentionPanel::resizeEvent(QResizeEvent* event) {
  Panel::resizeEvent(event);
  QTimer::singleShot(0, this, &AttentionPanel::alignKeyMass);
}

void AttentionPanel::showEvent(QShowEvent* event) {
  Panel::showEvent(event);
  QTimer::singleShot(0, this, &AttentionPanel::alignKeyMass);
}

void AttentionPanel::setThumbnails(std::shared_ptr<const ThumbnailSnapshot> snapshot,
                                   RangeFinder ranges) {
  thumbnails_ = std::move(snapshot);
  thumbnail_ranges_ = std::move(ranges);
  if (thumbnails_ == nullptr)
    thumbnail_ranges_ = {};
  else if (thumbnail_ranges_.grids().empty())
    thumbnail_ranges_ = RangeFinder({thumbnails_->all});
  grid_->setSnapshot(thumbnails_);
  showThumbnailRange();
  setChoice(choice_);
}

void AttentionPanel::showThumbnailRange() {
  if (thumbnails_ != nullptr) grid_->setRange(thumbnail_ranges_.range(request_));
}

ColorScale AttentionPanel::colorScale() const {
  ColorScale scale{{}, request_, {}, QStringLiteral("viridis"), tr("attention probability")};
  scale.ranges = choice_.is_grid ? thumbnail_ranges_ : map_.ranges;
  scale.grids.assign(scale.ranges.grids().begin(), scale.ranges.grids().end());
  scale.range = scale.ranges.range(request_);
  return scale;
}

void AttentionPanel::setRangeRequest(const RangeRequest& request) {
  request_ = request;
  if (snapshot_ != nullptr) {
    const ValueRange range = map_.ranges.range(request_);
    heatmap_->setRange(range, QString::fromStdString(summary_text(map_.ranges.summary(range))));
  }
  if (choice_.is_grid) showThumbnailRange();
  emit colorScaleChanged();
}

void AttentionPanel::setSelection(const CellRef& selection) {
  selection_ = selection;
  grid_->setHead(selection.layer, selection.head);
  if (snapshot_ == nullptr) return;
  heatmap_->setSelectedCell(placeOf(selection));
  key_mass_->setMark(selection.key < 0 ? -1 : place_in(snapshot_->keys, selection.key));
}

std::optional<CellAt> AttentionPanel::placeOf(const CellRef& cell) const {
  if (snapshot_ == nullptr || cell.query < 0 || cell.key < 0) return std::nullopt;
  const int row = place_in(snapshot_->queries, cell.query);
  const int col = place_in(snapshot_->keys, cell.key);
  return row >= 0 && col >= 0 ? std::optional(CellAt{row, col}) : std::nullopt;
}

void AttentionPanel::setPins(const std::vector<CellRef>& pins) {
  pins_ = pins;
  std::vector<CellAt> cells;
  for (const CellRef& pin : pins_)
    if (const auto cell = placeOf(pin)) cells.push_back(*cell);
  heatmap_->setPinnedCells(std::move(cells));
}

ReadOut AttentionPanel::readOut(int row, int col) const {
  ReadOut out;
  if (snapshot_ == nullptr || row < 0 || col < 0 || !snapshot_->map.exists(row, col)) return out;
  out.cell.query = snapshot_->queries[static_cast<std::size_t>(row)];
  out.cell.key = out.cell.token = snapshot_->keys[static_cast<std::size_t>(col)];
  if (snapshot_->request.combine == Combine::single) {
    out.cell.layer = snapshot_->request.layers.front();
    out.cell.head = snapshot_->request.heads.front();
  }
  out.value = QString::fromStdString(readable(snapshot_->map.at(row, col)));
  out.lines = {token_line(tr("query"), *snapshot_, out.cell.query),
               token_line(tr("key"), *snapshot_, out.cell.key), tr("p = %1").arg(out.value)};
  if (snapshot_->cell_size > 1)
    out.lines << tr("largest of about %1 × %1 tokens").arg(snapshot_->cell_size);
  const bool is_one = snapshot_->request.combine == Combine::single;
  if (is_one && snapshot_->cell_size == 1 && snapshot_->request.view == AttentionView::raw)
    out.pin = {PinnedCell::Quantity::attention, out.cell};
  out.place = QStringLiteral("%1 · q%2 k%3")
                  .arg(is_one ? QStringLiteral("L%1H%2").arg(out.cell.layer).arg(out.cell.head)
                              : QString::fromStdString(snapshot_->title))
                  .arg(out.cell.query)
                  .arg(out.cell.key);
  return out;
}

ReadOut AttentionPanel::tileReadOut(int layer_slot, int head) const {
  ReadOut out;
  if (thumbnails_ == nullptr || layer_slot < 0 || head < 0) return out;
  out.cell.layer = thumbnails_->layers[static_cast<std::size_t>(layer_slot)];
  out.cell.head = head;
  out.value = QString::fromStdString(readable(thumbnails_->scores.at(layer_slot, head)));
  out.place = tr("L%1H%2 · sink score").arg(out.cell.layer).arg(head);
  out.pin = {PinnedCell::Quantity::score, out.cell};
  out.lines = {
      QString::fromStdString(layer_label(out.cell.layer, thumbnails_->facts.model.n_layers)),
      tr("head %1").arg(head), tr("sink score %1").arg(out.value)};
  return out;
}

std::optional<CellRect> AttentionPanel::zoomedTo() const {
  return choice_.is_grid ? std::nullopt : heatmap_->zoomedTo();
}

QString AttentionPanel::valuesAsText() const {
  if (snapshot_ == nullptr) return {};
  const CellRect view = heatmap_->view();
  if (view.height() * view.width() > kMostCopiedCells)
    return tr("More than 1,000,000 cells are in view: zoom in to copy their values") +
           QLatin1Char('\n');
  return values_table(snapshot_->map, {{}, {}, snapshot_->queries, {}},
                      {{}, {}, snapshot_->keys, {}}, view, QStringLiteral("query"));
}

}  // namespace sinkscope
