// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/gui/reading_column.h"

#include <QClipboard>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QMenu>
#include <QScrollArea>
#include <QScrollBar>
#include <QTableView>
#include <QToolButton>
#include <QVBoxLayout>

#include "core/number_text.h"
#include "views/heatmap/color_bar.h"
#include "views/heatmap/heatmap.h"
#include "views/theme.h"
#include "views/widgets/findings_list.h"
#include "views/widgets/help_button.h"

namespace sinkscope {
namespace {

constexpr int kWidestColumn = 135;  // of the pins: the value stays in sight beside its cell

QLabel* heading(const QString& text, QWidget* parent) {
  auto* label = new QLabel(text, parent);
  QFont bold = label->font();
  bold.setBold(true);
  label->setFont(bold);
  return label;
}

}  // namespace

ReadingColumn::ReadingColumn(Session& session, QWidget* parent)
    : QWidget(parent),
      session_(session),
      bar_(new ColorBar(this)),
      cursor_(new QLabel(this)),
      pin_button_(new QToolButton(this)),
      findings_(new FindingsList(this)),
      table_(new QTableView(this)) {
  build();
  connect(bar_, &ColorBar::rangeRequested, this, [this](const RangeRequest& request) {
    if (panel_ != nullptr) panel_->setRangeRequest(request);
  });
  connect(bar_, &ColorBar::reductionRequested, this, [this](Reduction reduction) {
    for (Heatmap* map : panel_ == nullptr ? QList<Heatmap*>() : panel_->findChildren<Heatmap*>()) {
      pyramids_.serve(*map);
      map->setReduction(reduction);
    }
  });
  connect(findings_, &FindingsList::picked, this, &ReadingColumn::picked);
  connect(pin_button_, &QToolButton::clicked, this, &ReadingColumn::pin);
  connect(table_, &QTableView::clicked, this,
          [this](const QModelIndex& index) { emit picked(pins_.pin(index.row()).what.cell); });
  connect(table_, &QTableView::customContextMenuRequested, this, [this](const QPoint& at) {
    const QModelIndex index = table_->indexAt(at);
    if (!index.isValid()) return;
    QMenu menu;
    const QAction* remove = menu.addAction(tr("Remove pin"));
    const QAction* copy = menu.addAction(tr("Copy the table"));
    const QAction* chosen = menu.exec(table_->viewport()->mapToGlobal(at));
    if (chosen == copy) QGuiApplication::clipboard()->setText(pins_.asText());
    if (chosen != remove) return;
    pins_.removeRows(index.row(), 1);
    session_.setPinnedCells(pins_.cells());
  });
  connect(&session_, &Session::snapshotChanged, this, [this](Picture picture) {
    if (picture == Picture::pins) showPinValues();
    if (picture != Picture::overview) return;
    const auto snapshot = session_.overview().snapshot;
    findings_->setFindings(snapshot == nullptr ? std::vector<Finding>() : snapshot->findings);
    findings_heading_->setVisible(snapshot != nullptr && !snapshot->findings.empty());
  });
  connect(&pins_, &PinTable::modelReset, this, &ReadingColumn::fitTable);
  fitTable();
  showReadOut({});
}

void ReadingColumn::build() {
  setAutoFillBackground(true);
  setBackgroundRole(QPalette::Base);
  cursor_->setMinimumHeight(3 * fontMetrics().lineSpacing() + 4);
  cursor_->setAlignment(Qt::AlignTop | Qt::AlignLeft);
  cursor_->setWordWrap(true);
  cursor_->setTextFormat(Qt::PlainText);
  pin_button_->setText(tr("Pin"));
  pin_button_->setToolTip(tr("Keep this cell in the table below (P)"));
  table_->setModel(&pins_);
  table_->setFrameShape(QFrame::NoFrame);
  table_->verticalHeader()->hide();
  table_->horizontalHeader()->setStretchLastSection(true);
  table_->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  table_->horizontalHeader()->setMaximumSectionSize(kWidestColumn);
  table_->setTextElideMode(Qt::ElideMiddle);
  table_->setShowGrid(false);
  table_->setSelectionBehavior(QAbstractItemView::SelectRows);
  table_->setContextMenuPolicy(Qt::CustomContextMenu);
  table_->verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 6);
  table_->setAccessibleName(tr("Pinned cells"));

  auto* inner = new QWidget(this);
  inner->setBackgroundRole(QPalette::Base);
  auto* layout = new QVBoxLayout(inner);
  auto* range = new QHBoxLayout;
  range->addWidget(heading(tr("Range"), inner), 1);
  range->addWidget(new HelpButton("color range", inner));
  layout->addLayout(range);
  layout->addWidget(bar_);
  auto* under = new QHBoxLayout;
  under->addWidget(heading(tr("Under the cursor"), inner), 1);
  under->addWidget(pin_button_);
  layout->addLayout(under);
  layout->addWidget(cursor_);
  pins_heading_ = heading(tr("Pinned"), inner);
  layout->addWidget(pins_heading_);
  layout->addWidget(table_);
  findings_heading_ = heading(tr("Findings"), inner);
  findings_heading_->hide();
  layout->addWidget(findings_heading_);
  layout->addWidget(findings_);
  layout->addStretch(1);
  auto* scroll = new QScrollArea(this);
  scroll->setWidget(inner);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  auto* outer = new QVBoxLayout(this);
  outer->setContentsMargins(0, 0, 0, 0);
  outer->addWidget(scroll);
  setMinimumWidth(230);
}

void ReadingColumn::setPanel(Panel* panel) {
  if (panel_ != nullptr) disconnect(panel_, nullptr, this, nullptr);
  panel_ = panel;
  showReadOut({});
  showScale();
  if (panel_ == nullptr) return;
  connect(panel_, &Panel::colorScaleChanged, this, &ReadingColumn::showScale);
  connect(panel_, &Panel::hovered, this, &ReadingColumn::showReadOut);
  connect(panel_, &Panel::pinAsked, this, [this](const ReadOut& readOut) {
    remember(readOut);
    pin();
  });
}

void ReadingColumn::showScale() {
  const ColorScale scale = panel_ == nullptr ? ColorScale() : panel_->colorScale();
  bar_->setVisible(!scale.grids.empty());
  if (scale.grids.empty()) return;
  bar_->setScale({scale.request, scale.range, scale.colormap.toStdString(), scale.summary(),
                  scale.quantity.toStdString()});
  const QList<Heatmap*> maps = panel_->findChildren<Heatmap*>();
  bar_->setReduction(maps.isEmpty() ? std::nullopt : std::optional(maps.front()->reduction()));
}

void ReadingColumn::stepRange(int by) {
  if (panel_ == nullptr) return;
  panel_->setRangeRequest(ColorBar::cycled(panel_->colorScale().request, by));
}

void ReadingColumn::showReadOut(const ReadOut& readOut) {
  if (!readOut.lines.isEmpty()) remember(readOut);
  pin_button_->setEnabled(!last_.lines.isEmpty());
  cursor_->setText(readOut.lines.join(QLatin1Char('\n')));
}

// Whose the number is: a run as the table of pins names it, or the model.
void ReadingColumn::remember(const ReadOut& readOut) {
  const Selection& selection = session_.selection();
  last_ = readOut;
  const auto model = session_.model();
  last_run_.clear();
  for (const PinColumn& column : pin_columns(session_.runs(), session_.models()))
    if (selection.path.empty() ? model != nullptr && column.path == model->card.path
                               : column.path == selection.path && column.run == selection.run)
      last_run_ = QString::fromStdString(column.title);
  if (last_run_.isEmpty() && model != nullptr)
    last_run_ = QString::fromStdString(model->card.spec.name);
}

void ReadingColumn::showPinValues() {
  const auto pins = session_.pins().snapshot;
  if (pins == nullptr) return pins_.setValues({}, {}, {});
  QStringList runs;
  for (const PinColumn& column : pins->request.runs) runs << QString::fromStdString(column.title);
  std::vector<QStringList> values;
  for (const auto& row : pins->values) {
    values.emplace_back();
    for (const std::optional<double>& value : row)
      values.back() << (value ? QString::fromStdString(readable(*value)) : QString());
  }
  pins_.setValues(runs, pins->request.cells, values);
}

// As tall as its rows, up to a limit; nothing while nothing is pinned.
void ReadingColumn::fitTable() {
  constexpr int kMostRows = 6;
  const int rows = pins_.rowCount();
  pins_heading_->setVisible(rows > 0);
  table_->setVisible(rows > 0);
  table_->setFixedHeight(table_->horizontalHeader()->sizeHint().height() +
                         std::min(rows, kMostRows) *
                             table_->verticalHeader()->defaultSectionSize() +
                         table_->horizontalScrollBar()->sizeHint().height() + 2);
}

QString ReadingColumn::cursorText() const { return cursor_->text(); }

void ReadingColumn::pin() {
  if (last_.lines.isEmpty()) return;
  PinnedCell what = last_.pin;
  if (what.quantity == PinnedCell::Quantity::shown) what.cell = last_.cell;
  pins_.add({what, last_.place, last_.value, last_run_});
  session_.setPinnedCells(pins_.cells());
}

}  // namespace sinkscope
