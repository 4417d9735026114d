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
  // Of a mechanism's map; which score is shown is the session's to say.
  std::optional<FigureRequest> figureRequest() const override;
  void setSelection(const CellRef& selection) override;
  void setPins(const std::vector<CellRef>& pins) override;

  ScoreKind scoreKind() const;
  void setScoreKind(ScoreKind kind);  // emits nothing
  QComboBox& mapChoice() { return *kind_; }
  Heatmap& heatmap() { return *heatmap_; }

 signals:
  void scoreKindChanged(sinkscope::ScoreKind kind);

 private:
  // The mechanism's map that is chosen; null = a score.
  const MechanismMap* mechanism() const;
  const Grid& grid() const;
  const std::vector<int>& layers() const;
  bool has_heads() const { return mechanism() == nullptr || mechanism()->has_heads; }
  RangeRequest rangeRequest() const;
  QString mapTitle() const;
  void offerMechanisms();
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
