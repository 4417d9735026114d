// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/panels/what_if_panel.h"

#include <QCheckBox>
#include <QComboBox>
#include <QDir>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QListView>
#include <QMenu>
#include <QProgressBar>
#include <QPushButton>
#include <QScrollArea>
#include <QSignalBlocker>
#include <QTabWidget>
#include <QTableView>
#include <QToolButton>
#include <QVBoxLayout>
#include <cmath>

#include "core/number_text.h"
#include "views/panels/compare_panel.h"
#include "views/theme.h"
#include "views/widgets/absorb_dialog.h"
#include "views/widgets/edit_editor.h"
#include "views/widgets/edit_list_model.h"
#include "views/widgets/help_button.h"
#include "views/widgets/line_plot.h"
#include "views/widgets/outcome_table.h"

namespace sinkscope {
namespace {

constexpr int kEditsHeight = 156;  // five fields without scrolling

QString text_of(double value) { return QString::fromStdString(readable(value)); }

PlotLine peak_line(const QString& name, const std::vector<Peak>& peaks) {
  PlotLine line{name, {}, {}};
  for (std::size_t i = 0; i < peaks.size(); ++i) {
    line.x.push_back(static_cast<double>(i));
    line.y.push_back(peaks[i].token < 0 ? std::nan("") : peaks[i].value);
  }
  return line;
}

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
  lines_layout->addWidget(kl_, 1);
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

void WhatIfPanel::fillAddMenu() {
  QMenu* menu = add_->menu();
  menu->clear();
  for (const EditTemplate& offered : edit_templates(place_))
    menu->addAction(QString::fromStdString(offered.name), this,
                    [this, edit = offered.edit] { add(edit); });
  menu->addSeparator();
  menu->addAction(tr("From JSON in the clipboard"), this, &WhatIfPanel::pasteAsked);
}

void WhatIfPanel::add(const Edit& edit) {
  EditList edits = state_.edits;
  edits.push_back({edit, true});
  emit editsChanged(edits);
  list_view_->setCurrentIndex(list_->index(list_->rowCount() - 1));
}

int WhatIfPanel::selectedRow() const {
  const QModelIndex index = list_view_->currentIndex();
  return index.isValid() && index.row() < static_cast<int>(state_.edits.size()) ? index.row() : -1;
}

void WhatIfPanel::removeSelected() {
  const int row = selectedRow();
  if (row < 0) return;
  EditList edits = state_.edits;
  edits.erase(edits.begin() + row);
  emit editsChanged(edits);
}

void WhatIfPanel::replaceSelected(const Edit& edit, bool is_done) {
  const int row = selectedRow();
  if (row < 0) return;
  EditList edits = state_.edits;
  edits[static_cast<std::size_t>(row)].edit = edit;
  showFailure({});
  if (is_done)
    emit editsChanged(edits);
  else
    emit previewAsked(edits, row);
}

void WhatIfPanel::setState(const WhatIfState& state) {
  const bool new_result = state.result != state_.result;
  const bool new_preview = state.preview != state_.preview ||
                           state.preview_failure != state_.preview_failure ||
                           state.edits.empty() != state_.edits.empty();
  const bool new_maps =
      new_result || state.maps != state_.maps || state.maps_failure != state_.maps_failure;
  state_ = state;
  list_->setEdits(state_.edits);
  if (selectedRow() < 0 && !state_.edits.empty())
    list_view_->setCurrentIndex(list_->index(static_cast<int>(state_.edits.size()) - 1));
  showSelected();
  undo_->setEnabled(state_.can_undo);
  redo_->setEnabled(state_.can_redo);
  subject_->setText(QString::fromStdString(state_.subject));
  const bool any_on = !switched_on(state_.edits).empty();
  run_->setEnabled(state_.obstacle.empty() && any_on);
  run_->setToolTip(QString::fromStdString(state_.obstacle));
  const bool is_busy = state_.is_running || state_.is_absorbing;
  for (QWidget* widget : {static_cast<QWidget*>(progress_), static_cast<QWidget*>(cancel_),
                          static_cast<QWidget*>(progress_text_)})
    widget->setVisible(is_busy);
  if (!is_busy) setProgress(-1, {});
  absorb_->setEnabled(state_.obstacle.empty() && !state_.is_absorbing);
  showFailure(QString::fromStdString(state_.failure));
  note_->setText(QString::fromStdString(state_.note));
  note_->setVisible(!state_.note.empty());
  if (new_maps)
    maps_->setSnapshot(state_.maps, state_.result == nullptr
                                        ? tr("Run the model to see it before and after the edits.")
                                        : QString::fromStdString(state_.maps_failure));
  const QSignalBlocker blocker(map_kind_);
  map_kind_->setCurrentIndex(map_kind_->findData(static_cast<int>(state_.maps_request.kind)));
  if (new_preview) showPreview();
  if (new_result) showNumbers();
  showSummary();
}

void WhatIfPanel::showPreview() {
  const auto shown = state_.preview;
  QString text = QString::fromStdString(state_.preview_failure);
  std::shared_ptr<const CompareSnapshot> maps;
  std::vector<PlotLine> lines;
  if (shown != nullptr) {
    text = QString::fromStdString(shown->title + "; " + shown->text);
    maps = std::shared_ptr<const CompareSnapshot>(shown, &shown->maps);
    for (const auto* values : {&shown->line_before, &shown->line_after}) {
      PlotLine line{values == &shown->line_before ? tr("before") : tr("after"), {}, *values};
      for (std::size_t t = 0; t < values->size(); ++t) line.x.push_back(static_cast<double>(t));
      lines.push_back(std::move(line));
    }
  }
  preview_text_->setText(text);
  preview_maps_->setSnapshot(maps, state_.edits.empty()
                                       ? tr("Add an edit to see what it does to one norm or head.")
                                       : QString::fromStdString(state_.preview_failure));
  preview_line_->setVisible(shown != nullptr);
  preview_line_->setLines(shown ? QString::fromStdString(shown->line_title) : QString(),
                          tr("token"), std::move(lines));
}

QString WhatIfPanel::previewText() const { return preview_text_->text(); }

void WhatIfPanel::showTab(int index) { tabs_->setCurrentIndex(index); }

void WhatIfPanel::askAbsorb() {
  AbsorbDialog dialog(QDir::home().filePath(QStringLiteral("absorbed")), this);
  if (dialog.exec() == QDialog::Accepted)
    emit absorbAsked(dialog.dims(), dialog.factor(), dialog.folder());
}

void WhatIfPanel::showSelected() {
  const int row = selectedRow();
  remove_->setEnabled(row >= 0);
  editor_->setEdit(row < 0 ? std::nullopt
                           : std::optional(state_.edits[static_cast<std::size_t>(row)].edit));
  const bool has_reach = row >= 0 && row < static_cast<int>(state_.reaches.size());
  reach_->setText(has_reach ? QString::fromStdString(state_.reaches[static_cast<std::size_t>(row)])
                            : QString());
  reach_->setToolTip(reach_->text());
}

void WhatIfPanel::showSummary() {
  const bool can_say = state_.result != nullptr;
  QString text;
  if (can_say) {
    const WhatIfOutcome& outcome = state_.result->outcome;
    if (!state_.is_current)
      text = tr("Of other edits (%1): ").arg(QString::fromStdString(what_if_text(outcome.what_if)));
    if (std::isnan(outcome.loss.baseline))
      text += tr("no head, no loss and no KL");
    else
      text += tr("KL mean %1, largest %2 at token %3 · loss %4 → %5 · perplexity %6 → %7")
                  .arg(text_of(outcome.kl_mean), text_of(outcome.kl_max))
                  .arg(outcome.kl_max_token)
                  .arg(text_of(outcome.loss.baseline), text_of(outcome.loss.edited),
                       text_of(std::exp(outcome.loss.baseline)),
                       text_of(std::exp(outcome.loss.edited)));
    text += QStringLiteral("\n") + QString::fromStdString(state_.result->outlier_text);
  } else if (!state_.obstacle.empty()) {
    text = tr("Cannot run: %1").arg(QString::fromStdString(state_.obstacle));
  } else if (switched_on(state_.edits).empty()) {
    text = tr("No edit is switched on: the model as it is.");
  }
  summary_->setText(text);
  summary_->setVisible(!text.isEmpty());
  QPalette colors = palette();
  if (can_say && !state_.is_current) colors.setColor(QPalette::WindowText, muted_color(palette()));
  summary_->setPalette(colors);
}

void WhatIfPanel::showNumbers() {
  const bool can_say = state_.result != nullptr;
  numbers_->setLines(can_say ? outcome_lines(state_.result->outcome) : std::vector<OutcomeLine>());
  PlotLine kl{tr("KL"), {}, {}};
  if (can_say)
    for (std::size_t t = 0; t < state_.result->kl.size(); ++t) {
      kl.x.push_back(static_cast<double>(t));
      kl.y.push_back(state_.result->kl[t]);
    }
  kl_->setLines(tr("KL(before ‖ after) of the next token, nats"), tr("token"), {kl});
  std::vector<PlotLine> peaks;
  if (can_say)
    peaks = {peak_line(tr("before"), state_.result->outcome.peaks.baseline),
             peak_line(tr("after"), state_.result->outcome.peaks.edited)};
  peaks_->setLines(tr("Largest |x| of the stream"), tr("residual site"), peaks);
}

void WhatIfPanel::showFailure(const QString& message) {
  QPalette colors = palette();
  colors.setColor(QPalette::WindowText, warning_color(palette()));
  failure_->setPalette(colors);
  failure_->setText(message);
  failure_->setVisible(!message.isEmpty());
}

void WhatIfPanel::setProgress(double share, const QString& text) {
  progress_->setRange(0, share < 0 ? 0 : 1000);
  progress_->setValue(share < 0 ? 0 : static_cast<int>(share * 1000));
  progress_text_->setText(text);
}

QString WhatIfPanel::summaryText() const { return summary_->text(); }

QString WhatIfPanel::failureText() const {
  return failure_->isVisibleTo(this) ? failure_->text() : QString();
}

ColorScale WhatIfPanel::colorScale() const {
  return tabs_->currentIndex() == 0   ? maps_->colorScale()
         : tabs_->currentIndex() == 1 ? preview_maps_->colorScale()
                                      : ColorScale();
}

void WhatIfPanel::setRangeRequest(const RangeRequest& request) {
  (tabs_->currentIndex() == 1 ? preview_maps_ : maps_)->setRangeRequest(request);
}

QString WhatIfPanel::valuesAsText() const {
  return tabs_->currentIndex() == 0   ? maps_->valuesAsText()
         : tabs_->currentIndex() == 1 ? preview_maps_->valuesAsText()
                                      : numbers_->asText();
}

void WhatIfPanel::setSelection(const CellRef& selection) { maps_->setSelection(selection); }

std::optional<FigureRequest> WhatIfPanel::figureRequest() const {
  if (state_.result == nullptr) return std::nullopt;
  FigureRequest request;
  request.kind = "compare";
  request.inputs = {state_.result->path, state_.result->path + "::" + state_.result->after.run};
  request.names = {"before", "after"};
  request.layer = state_.maps_request.layer;
  const bool is_attention = state_.maps_request.kind == MapKind::attention;
  request.of = is_attention ? "attention-mean" : "residual-sorted";
  if (is_attention) request.head = state_.maps_request.head;
  return request;
}

}  // namespace sinkscope
