// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <optional>

#include "core/snapshot/what_if_snapshot.h"
#include "views/panels/panel.h"

class QCheckBox;
class QComboBox;
class QLabel;
class QListView;
class QProgressBar;
class QPushButton;
class QTabWidget;
class QToolButton;

namespace sinkscope {

class ComparePanel;
class EditEditor;
class EditListModel;
class LinePlot;
class OutcomeTable;

// The edits with their sliders, what a rerun of the model under them shows, and ways to take it
// away. The panel changes nothing itself: it says what is wanted and is told the state.
class WhatIfPanel : public Panel {
  Q_OBJECT

 public:
  explicit WhatIfPanel(QWidget* parent = nullptr);

  void setState(const WhatIfState& state);
  // Of the rerun: share 0 to 1, or negative while it is not known.
  void setProgress(double share, const QString& text);
  // The place whose edits the menu "Add" offers.
  void setPlace(const EditPlace& place) { place_ = place; }

  ColorScale colorScale() const override;
  void setRangeRequest(const RangeRequest& request) override;
  QString valuesAsText() const override;
  void setSelection(const CellRef& selection) override;
  std::optional<FigureRequest> figureRequest() const override;
  std::vector<MadeFile> madeFiles() const override;

  QString summaryText() const;
  QString failureText() const;
  const EditListModel& list() const { return *list_; }
  EditEditor& editor() { return *editor_; }
  const ComparePanel& maps() const { return *maps_; }
  const ComparePanel& previewMaps() const { return *preview_maps_; }
  QString previewText() const;
  void showTab(int index);  // before and after, preview, KL and outlier, numbers

 signals:
  void editsChanged(const sinkscope::EditList& edits);
  // While a slider is dragged, and when another edit is selected: `selected` decides the place.
  void previewAsked(const sinkscope::EditList& edits, int selected);
  void undoAsked();
  void redoAsked();
  void runAsked();
  void cancelAsked();
  void runsAlwaysChanged(bool always);
  void mapsAsked(sinkscope::MapKind kind);
  void commandAsked();  // to be copied
  void jsonAsked();
  void pasteAsked();  // edits as JSON, behind those that are there
  void saveAsked();   // the result, as a capture
  void absorbAsked(const QString& dims, const QString& factor, const QString& folder);

 private:
  QWidget* makeEdits();
  QWidget* makeActions();
  QWidget* makeResult();
  void fillAddMenu();
  void add(const Edit& edit);
  void removeSelected();
  void replaceSelected(const Edit& edit, bool is_done);
  int selectedRow() const;
  void showSelected();
  void showSummary();
  void showNumbers();
  void showPreview();
  void askAbsorb();
  void showFailure(const QString& message);

  WhatIfState state_;
  EditPlace place_;
  EditListModel* list_;
  QListView* list_view_;
  EditEditor* editor_;
  QToolButton *add_ = nullptr, *remove_ = nullptr, *undo_ = nullptr, *redo_ = nullptr;
  QLabel *subject_ = nullptr, *reach_ = nullptr, *failure_, *note_, *summary_,
         *progress_text_ = nullptr;
  QPushButton *run_ = nullptr, *cancel_ = nullptr, *absorb_ = nullptr;
  QToolButton* take_ = nullptr;
  QCheckBox* always_ = nullptr;
  QProgressBar* progress_ = nullptr;
  QTabWidget* tabs_;
  QComboBox* map_kind_;
  ComparePanel *maps_, *preview_maps_;
  QLabel* preview_text_;
  LinePlot *kl_, *peaks_, *preview_line_;
  OutcomeTable* numbers_;
};

}  // namespace sinkscope
