// SPDX-License-Identifier: GPL-3.0-or-later
// What the What-if panel is made of.
#include <QCheckBox>
#include <QComboBox>
#include <QGridLayout>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QListView>
#include <QMenu>
#include <QProgressBar>
#include <QPushButton>
#include <QScrollArea>
#include <QTabWidget>
#include <QTableView>
#include <QToolButton>
#include <QVBoxLayout>

#include "views/panels/compare_panel.h"
#include "views/panels/what_if_panel.h"
#include "views/theme.h"
#include "views/widgets/edit_editor.h"
#include "views/widgets/edit_list_model.h"
#include "views/widgets/help_button.h"
#include "views/widgets/line_plot.h"
#include "views/widgets/outcome_table.h"

namespace sinkscope {
namespace {

constexpr int kEditsHeight = 156;  // five fields without scrolling

}  // namespace

WhatIfPanel::WhatIfPanel(QWidget* parent)
    : Panel(parent),
      list_(new EditListModel(this)),
      list_view_(new QListView(this)),
      editor_(new EditEditor(this)),
      failure_(new QLabel(this)),
      note_(new QLabel(this)),
      summary_(new QLabel(this)),
      tabs_(new QTabWidget(this)),
      map_kind_(new QComboBox(this)),
      maps_(new ComparePanel(this)),
      preview_maps_(new ComparePanel(this)),
      preview_text_(new QLabel(this)),
      kl_(new LinePlot(this)),
      peaks_(new LinePlot(this)),
      preview_line_(new LinePlot(this)),
      numbers_(new OutcomeTable(this)) {
  for (QLabel* label : {failure_, note_, summary_}) {
    label->setWordWrap(true);
    label->setTextFormat(Qt::PlainText);
    label->setTextInteractionFlags(Qt::TextSelectableByMouse);
  }
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(makeEdits());
  layout->addWidget(makeActions());
  layout->addWidget(failure_);
  layout->addWidget(note_);
  layout->addWidget(summary_);
  layout->addWidget(makeResult(), 1);
  connect(list_, &EditListModel::switched, this, [this](int row, bool on) {
    EditList edits = state_.edits;
    if (row >= static_cast<int>(edits.size())) return;
    edits[static_cast<std::size_t>(row)].is_on = on;
    emit editsChanged(edits);
  });
  connect(editor_, &EditEditor::moved, this,
          [this](const Edit& edit) { replaceSelected(edit, false); });
  connect(editor_, &EditEditor::changed, this,
          [this](const Edit& edit) { replaceSelected(edit, true); });
  connect(editor_, &EditEditor::refused, this, &WhatIfPanel::showFailure);
  for (ComparePanel* maps : {maps_, preview_maps_}) {
    maps->setSideBySide(true);
    maps->setSnapshot(nullptr, tr("Run the model to see it before and after the edits."));
    connect(maps, &Panel::hovered, this, &Panel::hovered);
    connect(maps, &Panel::picked, this, &Panel::picked);
    connect(maps, &Panel::pinAsked, this, &Panel::pinAsked);
    connect(maps, &Panel::colorScaleChanged, this, &Panel::colorScaleChanged);
  }
  setState({});
  showPreview();
  showNumbers();
}

QWidget* WhatIfPanel::makeEdits() {
  auto* all = new QWidget(this);
  const auto button = [&](const QString& text, const QString& tip) {
    auto* made = new QToolButton(all);
    made->setText(text);
    made->setToolTip(tip);
    return made;
  };
  add_ = button(tr("Add"), tr("Add an edit"));
  add_->setPopupMode(QToolButton::InstantPopup);
  auto* menu = new QMenu(add_);
  add_->setMenu(menu);
  connect(menu, &QMenu::aboutToShow, this, &WhatIfPanel::fillAddMenu);
  remove_ = button(tr("Remove"), tr("Remove the selected edit"));
  undo_ = button(tr("Undo"), tr("Undo the last change of the edits"));
  redo_ = button(tr("Redo"), tr("Redo what was undone"));
  undo_->setShortcut(QKeySequence::Undo);
  redo_->setShortcut(QKeySequence::Redo);
  connect(remove_, &QToolButton::clicked, this, &WhatIfPanel::removeSelected);
  connect(undo_, &QToolButton::clicked, this, &WhatIfPanel::undoAsked);
  connect(redo_, &QToolButton::clicked, this, &WhatIfPanel::redoAsked);
  list_view_->setModel(list_);
  list_view_->setWordWrap(true);
  list_view_->setSpacing(2);  // a row is no higher than its text, its box is
  list_view_->setResizeMode(QListView::Adjust);
  list_view_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  list_view_->setAccessibleName(tr("Edits"));
  connect(list_view_->selectionModel(), &QItemSelectionModel::currentChanged, this, [this] {
    showSelected();
    emit previewAsked(state_.edits, selectedRow());
  });

  auto* buttons = new QHBoxLayout;
  for (QToolButton* one : {add_, remove_, undo_, redo_}) buttons->addWidget(one);
  buttons->addStretch(1);
  auto* left = new QVBoxLayout;
  left->addWidget(list_view_, 1);
  left->addLayout(buttons);
  auto* scroll = new QScrollArea(all);
  scroll->setWidget(editor_);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  subject_ = new QLabel(all);
  subject_->setForegroundRole(QPalette::PlaceholderText);
  auto* retrained = new QLabel(tr("not retrained"), all);
  retrained->setToolTip(
      tr("The model was trained without these edits; what it would learn under "
         "them is another question."));
  auto* heading = new QHBoxLayout;
  heading->addWidget(subject_, 1);
  heading->addWidget(retrained);
  heading->addWidget(new HelpButton("what-if", all));
  reach_ = new QLabel(all);
  reach_->setForegroundRole(QPalette::PlaceholderText);
  reach_->setFont(caption_font(font()));
  reach_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
  auto* right = new QVBoxLayout;
  right->addWidget(scroll, 1);
  right->addWidget(reach_);
  auto* columns = new QHBoxLayout;
  columns->addLayout(left, 5);
  columns->addLayout(right, 6);
  auto* layout = new QVBoxLayout(all);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addLayout(heading);
  layout->addLayout(columns, 1);
  all->setFixedHeight(kEditsHeight + 2 * fontMetrics().lineSpacing());
  return all;
}

QWidget* WhatIfPanel::makeActions() {
  auto* all = new QWidget(this);
  run_ = new QPushButton(tr("Run the model"), all);
  always_ = new QCheckBox(tr("after every change"), all);
  progress_text_ = new QLabel(all);
  progress_ = new QProgressBar(all);
  progress_->setTextVisible(false);
  progress_->setFixedWidth(110);
  cancel_ = new QPushButton(tr("Cancel"), all);
  absorb_ = new QPushButton(tr("Absorb…"), all);
  absorb_->setToolTip(
      tr("Move outlier dimensions into a gain in front of each norm, without "
         "changing what the model computes, and write that model"));
  take_ = new QToolButton(all);
  take_->setText(tr("Take away"));
  take_->setToolTip(tr("Copy or save what is here"));
  take_->setPopupMode(QToolButton::InstantPopup);
  auto* menu = new QMenu(take_);
  menu->addAction(tr("Copy as command"), this, &WhatIfPanel::commandAsked);
  menu->addAction(tr("Copy as JSON"), this, &WhatIfPanel::jsonAsked);
  menu->addAction(tr("Export before and after…"), this, &WhatIfPanel::exportAsked);
  menu->addAction(tr("Save the result as a capture…"), this, &WhatIfPanel::saveAsked);
  connect(menu, &QMenu::aboutToShow, this, [this, menu] {
    const QList<QAction*> actions = menu->actions();
    actions[0]->setEnabled(state_.obstacle.empty() && !state_.edits.empty());
    actions[1]->setEnabled(!state_.edits.empty());
    for (int i : {2, 3}) actions[i]->setEnabled(state_.result != nullptr);
  });
  take_->setMenu(menu);
  connect(run_, &QPushButton::clicked, this, &WhatIfPanel::runAsked);
  connect(cancel_, &QPushButton::clicked, this, &WhatIfPanel::cancelAsked);
  connect(always_, &QCheckBox::toggled, this, &WhatIfPanel::runsAlwaysChanged);
  connect(absorb_, &QPushButton::clicked, this, &WhatIfPanel::askAbsorb);
  auto* layout = new QHBoxLayout(all);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(run_);
  layout->addWidget(always_);
  layout->addWidget(progress_text_);
  layout->addWidget(progress_);
  layout->addWidget(cancel_);
  layout->addStretch(1);
  layout->addWidget(take_);
  layout->addWidget(absorb_);
  return all;
}

QWidget* WhatIfPanel::makeResult() {
  map_kind_->addItem(tr("Attention of the selected head"), static_cast<int>(MapKind::attention));
  map_kind_->addItem(tr("Stream after the selected layer"), static_cast<int>(MapKind::residual));
  connect(map_kind_, &QComboBox::currentIndexChanged, this,
          [this] { emit mapsAsked(static_cast<MapKind>(map_kind_->currentData().toInt())); });
  auto* maps = new QWidget(tabs_);
  auto* maps_layout = new QVBoxLayout(maps);
  maps_layout->setContentsMargins(0, 4, 0, 0);
  maps_layout->addWidget(map_kind_, 0, Qt::AlignLeft);
  maps_layout->addWidget(maps_, 1);
  auto* preview = new QWidget(tabs_);
  auto* preview_layout = new QVBoxLayout(preview);
  preview_layout->setContentsMargins(0, 4, 0, 0);
  preview_text_->setWordWrap(true);
  preview_layout->addWidget(preview_text_);
  preview_layout->addWidget(preview_maps_, 3);
  preview_layout->addWidget(preview_line_, 2);
  auto* lines = new QWidget(tabs_);
  auto* lines_layout = new QVBoxLayout(lines);
  auto* kl = new QGridLayout;
  kl->addWidget(kl_, 0, 0);
  kl->addWidget(new HelpButton("KL", lines), 0, 0, Qt::AlignTop | Qt::AlignRight);
  lines_layout->addLayout(kl, 1);
  lines_layout->addWidget(peaks_, 1);
  auto* table = new QTableView(tabs_);
  table->setModel(numbers_);
  table->verticalHeader()->hide();
  table->verticalHeader()->setDefaultSectionSize(fontMetrics().lineSpacing() + 4);
  table->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
  table->horizontalHeader()->setSectionResizeMode(OutcomeTable::name, QHeaderView::Stretch);
  table->setShowGrid(false);
  table->setSelectionBehavior(QAbstractItemView::SelectRows);
  tabs_->addTab(maps, tr("Before and after"));
  tabs_->addTab(preview, tr("Preview"));
  tabs_->setTabToolTip(1,
                       tr("One norm or head, recomputed from the recording while a slider moves; "
                          "its input is that of the model as it is"));
  tabs_->addTab(lines, tr("KL and outlier"));
  tabs_->addTab(table, tr("Numbers"));
  connect(tabs_, &QTabWidget::currentChanged, this, &Panel::colorScaleChanged);
  return tabs_;
}

}  // namespace sinkscope
