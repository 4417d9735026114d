// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/panels/what_if_panel.h"

#include <QCheckBox>
#include <QComboBox>
#include <QDir>
#include <QLabel>
#include <QListView>
#include <QMenu>
#include <QProgressBar>
#include <QPushButton>
#include <QSignalBlocker>
#include <QTabWidget>
#include <QToolButton>
#include <cmath>

#include "core/number_text.h"
#include "views/panels/compare_panel.h"
#include "views/theme.h"
#include "views/widgets/absorb_dialog.h"
#include "views/widgets/edit_editor.h"
#include "views/widgets/edit_list_model.h"
#include "views/widgets/line_plot.h"
#include "views/widgets/outcome_table.h"

namespace sinkscope {
namespace {

QString text_of(double value) { return QString::fromStdString(readable(value)); }

PlotLine peak_line(const QString& name, const std::vector<RunPeak>& peaks) {
  PlotLine line{name, {}, {}};
  for (std::size_t i = 0; i < peaks.size(); ++i) {
    line.x.push_back(static_cast<double>(i));
    line.y.push_back(peaks[i].token < 0 ? std::nan("") : peaks[i].value);
  }
  return line;
}

}  // namespace

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
    maps_->setSnapshot(state_.maps,
                       state_.result == nullptr
                           ? tr("Run the model to see it before and after the edits.")
                           : QString::fromStdString(state_.maps_failure),
                       state_.maps == nullptr ? PreparedComparison() : state_.prepared_maps);
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
    peaks = {peak_line(tr("before"), state_.result->outcome.outliers.baseline.max_abs),
             peak_line(tr("after"), state_.result->outcome.outliers.edited.max_abs)};
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
  const std::string& path = state_.saved.empty() ? state_.result->path : state_.saved;
  request.inputs = {path, path + "::" + state_.result->after.run};
  request.names = {"before", "after"};
  request.layer = state_.maps_request.layer;
  const bool is_attention = state_.maps_request.kind == MapKind::attention;
  request.of = is_attention ? "attention-mean" : "residual-sorted";
  if (is_attention)
    request.head = state_.maps_request.head;
  else
    request.order = "natural";
  return request;
}

std::vector<MadeFile> WhatIfPanel::madeFiles() const {
  if (state_.result == nullptr || !state_.saved.empty()) return {};
  return {{state_.result->path, kWhatIfFile, state_.result_command}};
}

}  // namespace sinkscope
