// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>

#include "core/snapshot/overview_snapshot.h"
#include "views/panels/panel.h"

class QComboBox;

namespace sinkscope {

class Heatmap;
class LinePlot;

// Layer × head sink map, and what happens over depth. A click goes to that head.
class OverviewPanel : public Panel {
  Q_OBJECT

 public:
  explicit OverviewPanel(QWidget* parent = nullptr);

  void setSnapshot(std::shared_ptr<const OverviewSnapshot> snapshot);

  ColorScale colorScale() const override;
  void setRangeRequest(const RangeRequest& request) override;
  QString valuesAsText() const override;
  std::optional<CellRect> zoomedTo() const override;
  void setSelection(const CellRef& selection) override;
  void setPins(const std::vector<CellRef>& pins) override;

  ScoreKind scoreKind() const;
  void setScoreKind(ScoreKind kind);  // emits nothing
  Heatmap& heatmap() { return *heatmap_; }

 signals:
  void scoreKindChanged(sinkscope::ScoreKind kind);

 private:
  const Grid& grid() const { return snapshot_->score(scoreKind()); }
  ReadOut readOut(int row, int col) const;
  void showMap();
  void showLines();

  std::shared_ptr<const OverviewSnapshot> snapshot_;
  // Scores are shares: 0 to 1 for every model, so that overviews can be compared by eye.
  RangeRequest request_{RangeMode::fixed, 0, 1, Scale::linear, {}};
  CellRef selection_;
  std::vector<CellRef> pins_;
  Heatmap* heatmap_;
  QComboBox* kind_;
  LinePlot *stream_, *score_, *kurtosis_;
};

}  // namespace sinkscope
