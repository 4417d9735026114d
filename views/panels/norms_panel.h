// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <vector>

#include "core/snapshot/norms_snapshot.h"
#include "views/panels/panel.h"

class QComboBox;
class QLabel;
class QVBoxLayout;

namespace sinkscope {

class Heatmap;
struct CellAt;

// Gains of every norm role, one strip each: layers downwards, dimensions to the right, on a log
// scale centered at 1. Pixels of several dimensions show the gain farthest from 1; dimensions that
// deviate most are starred, the extreme gains stand beside their cells. Strips of equal width move
// and zoom together.
class NormsPanel : public Panel {
  Q_OBJECT

 public:
  explicit NormsPanel(QWidget* parent = nullptr);

  void setSnapshot(std::shared_ptr<const NormsSnapshot> snapshot, const QString& failure = {});

  ColorScale colorScale() const override;
  void setRangeRequest(const RangeRequest& request) override;
  QString valuesAsText() const override;
  std::optional<CellRect> zoomedTo() const override;
  void setSelection(const CellRef& selection) override;
  void setPins(const std::vector<CellRef>& pins) override;

  const std::vector<Heatmap*>& strips() const { return strips_; }

 signals:
  void viewAsked(sinkscope::GainView view);

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void showStrips();
  Heatmap* addStrip(std::size_t i);
  void linkView(std::size_t from);
  void linkCursor(std::size_t from, int row, int col);
  std::vector<Grid> grids() const;
  std::optional<CellAt> placeOf(const NormStrip& strip, const CellRef& cell) const;
  ReadOut readOut(std::size_t strip, int row, int col) const;

  std::shared_ptr<const NormsSnapshot> snapshot_;
  RangeRequest request_;
  ValueRange range_;
  CellRef selection_;
  std::vector<CellRef> pins_;
  std::vector<Heatmap*> strips_;
  QComboBox* view_;
  QLabel *view_text_, *nothing_;
  QVBoxLayout* column_;
};

}  // namespace sinkscope
