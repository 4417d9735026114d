// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QString>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/gui/compare_item.h"
#include "app/gui/open_files.h"
#include "app/gui/picture.h"
#include "app/gui/pinned_values.h"
#include "app/gui/worker.h"
#include "core/snapshot/cell_ref.h"

namespace sinkscope {

// What all panels look at.
struct Selection {
  std::string path, run;  // a run of an open capture; empty without one
  CellRef cell;           // layer and head always within the run, once there is one
  bool operator==(const Selection&) const = default;
};

inline constexpr int kCornerCells = 32;  // as drawn in 2601.22966

// How the panels show it, beyond the selection.
struct ViewOptions {
  Combine combine = Combine::single;
  bool all_layers = true;  // a combined map is over all layers, or over the selected one
  bool one_head = false;   // over all layers it is of the selected head, or of all
  AttentionView attention_view = AttentionView::raw;
  AttentionSource attention_source = AttentionSource::automatic;
  bool all_heads = false;         // attention: thumbnails of all heads instead of one map
  bool averaged_residual = true;  // over block states, or at the selected layer
  std::string residual_hook = "hook_resid_post";
  DimOrder order = DimOrder::sorted;
  std::vector<int> given_order;     // DimOrder::given
  bool is_corner = false;           // of the residual stream: the first kCornerCells of both
  ScoreKind score = ScoreKind::gu;  // of the overview
  GainView gain_view = GainView::gain;
  bool operator==(const ViewOptions&) const = default;
};

// The pictures that can be wanted; what nobody looks at is not read.
enum class Picture { overview, attention, thumbnails, residual, norms, compare, pins };

// The single ground truth of the window: what is open, what is selected, and the last snapshots.
// Reading happens on a worker; a result whose request is no longer current is dropped.
class Session : public QObject {
  Q_OBJECT

 public:
  explicit Session(QObject* parent = nullptr);
  ~Session() override;

  // What every capture goes through before it is opened; to be set before the first open().
  void setTrial(OpenFiles::Trial trial) { files_->set_trial(std::move(trial)); }

  // A capture ("RUN.h5", "RUN.h5::run3") or a model, described by `archFile` if there is one.
  // Answers with opened() or failed().
  void open(const QString& path, const QString& archFile = {});

  // All runs of all open captures, in the order of opening.
  const std::vector<std::shared_ptr<const RunFacts>>& runs() const { return runs_; }
  const OpenModels& models() const { return models_; }               // in the order of opening
  std::shared_ptr<const OpenModel> model() const { return model_; }  // the last chosen; null = none
  // The open model that a run was recorded of; null = it is not open.
  std::shared_ptr<const OpenModel> modelOf(const RunFacts& facts) const;
  std::shared_ptr<const RunFacts> run() const;  // the selected; null = none
  const Selection& selection() const { return selection_; }
  const ViewOptions& options() const { return options_; }
  const std::vector<CompareItem>& compareItems() const { return compare_items_; }
  const std::vector<PinnedCell>& pinnedCells() const { return pinned_; }
  FindSpace findSpace() const;

  // Intent. Layers, heads and positions beyond the run's are cut to it.
  void selectRun(const std::string& path, const std::string& run);
  void selectModel(const std::string& path);  // an open model, without a run
  void select(const CellRef& change);
  void stepLayer(int by);
  void stepHead(int by);
  void setOptions(const ViewOptions& options);
  void setCompareItems(std::vector<CompareItem> items);
  void setPinnedCells(std::vector<PinnedCell> cells);
  void setWanted(Picture picture, bool wanted);

  // The last snapshots; null until they are there, or when the data cannot fill them.
  const Shown<OverviewSnapshot>& overview() const { return overview_.shown; }
  const Shown<AttentionSnapshot>& attention() const { return attention_.shown; }
  const Shown<ThumbnailSnapshot>& thumbnails() const { return thumbnails_.shown; }
  const Shown<ResidualSnapshot>& residual() const { return residual_.shown; }
  const Shown<NormsSnapshot>& norms() const { return norms_.shown; }
  const Shown<CompareSnapshot>& compared() const { return compare_.shown; }
  const Shown<PinnedValues>& pins() const { return pins_.shown; }
  // Why a picture is not there although it was asked for; empty = no reason.
  QString failureOf(Picture picture) const;

 signals:
  void opened();            // a capture or a model came in
  void selectionChanged();  // or the options
  void snapshotChanged(sinkscope::Picture picture);
  void failed(const QString& message);

 private:
  void addRuns(const std::string& path, const std::string& run, std::vector<RunFacts> runs);
  void addModel(OpenModel model);
  void showModel(std::shared_ptr<const OpenModel> model);
  void clampSelection();
  void changed();  // asks for what is wanted and no longer current
  void refreshNorms();
  void refreshCompare();
  void refreshPins();
  std::optional<AttentionRequest> attentionRequest() const;
  std::optional<ResidualRequest> residualRequest() const;

  template <class Snapshot, class Request, class Read>
  void refresh(Picture picture, Slot<Snapshot, Request>& slot, const std::string& path,
               const std::optional<Request>& request, Read read);

  std::vector<std::shared_ptr<const RunFacts>> runs_;
  OpenModels models_;
  std::shared_ptr<const OpenModel> model_;
  Selection selection_;
  ViewOptions options_;
  std::vector<CompareItem> compare_items_;
  std::vector<PinnedCell> pinned_;
  Slot<OverviewSnapshot, OverviewRequest> overview_;
  Slot<AttentionSnapshot, AttentionRequest> attention_;
  Slot<ThumbnailSnapshot, ThumbnailRequest> thumbnails_;
  Slot<ResidualSnapshot, ResidualRequest> residual_;
  Slot<NormsSnapshot, NormsRequest> norms_;
  Slot<CompareSnapshot, CompareRequest> compare_;
  Slot<PinnedValues, PinsRequest> pins_;
  std::shared_ptr<OpenFiles> files_;  // the worker's
  std::unique_ptr<Worker> worker_;    // last: joined first
};

}  // namespace sinkscope
