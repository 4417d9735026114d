// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <vector>

#include "core/snapshot/prepared_comparison.h"
#include "views/panels/panel.h"

class QGridLayout;
class QLabel;
class QToolButton;

namespace sinkscope {

class ColorStrip;
class Heatmap;
struct CellAt;

// Two or more maps side by side and their differences to the first below them. The maps share one
// range while the lock is closed; open, each has its own, which is said in red. The differences
// have a range of their own, centered at 0. Zoom and cursor are linked by what the cells stand for:
// positions, layers or dimensions. What makes the sides unequal besides their numbers is written
// above them.
class ComparePanel : public Panel {
  Q_OBJECT

 public:
  explicit ComparePanel(QWidget* parent = nullptr);

  // `prepared` is of this snapshot where it was made off this thread, else it is made here.
  void setSnapshot(std::shared_ptr<const CompareSnapshot> snapshot, const QString& failure = {},
                   PreparedComparison prepared = {});
  // One range for all sides, or one for each.
  void setShared(bool shared);
  bool isShared() const { return shared_; }
  // Everything in one row, the strip of the differences at its end, instead of the differences
  // below: for a place that is wide and low.
  void setSideBySide(bool side_by_side);

  ColorScale colorScale() const override;
  void setRangeRequest(const RangeRequest& request) override;
  QString valuesAsText() const override;
  std::optional<CellRect> zoomedTo() const override;
  void setSelection(const CellRef& selection) override;
  void setPins(const std::vector<CellRef>& pins) override;

  // The sides, then the differences, in the order of the snapshot.
  const std::vector<Heatmap*>& maps() const { return maps_; }
  const ColorStrip& differenceStrip() const { return *difference_strip_; }
  QString notesText() const;

 protected:
  void changeEvent(QEvent* event) override;

 private:
  // One of the maps that are shown, a side or a difference.
  struct Shown {
    const Grid* grid;
    const std::vector<int>*rows, *cols;
    std::string title;
    const CompareSide* labels;  // whose token texts the axes have
  };

  std::size_t mapCount() const;
  Shown shown(std::size_t i) const;
  bool isDifference(std::size_t i) const { return i >= snapshot_->sides.size(); }
  Heatmap* addMap(std::size_t i);
  void arrange();
  void findScales();
  void showMaps();
  void showRanges();
  void writeNotes();
  void linkView(std::size_t from);
  void linkCursor(std::size_t from, int row, int col);
  std::optional<CellAt> placeOf(std::size_t i, const CellRef& cell) const;
  ReadOut readOut(std::size_t i, int row, int col) const;
  CellRef cellOf(std::size_t i, int row, int col) const;
  std::string sideColormap() const;

  std::shared_ptr<const CompareSnapshot> snapshot_;
  PreparedComparison prepared_;  // of snapshot_
  CellRef selection_;
  std::vector<CellRef> pins_;
  bool shared_ = true, side_by_side_ = false;
  RangeRequest request_, difference_request_;
  std::vector<ValueRange> ranges_;  // of each map
  std::vector<Heatmap*> maps_;
  QGridLayout* grid_;
  QLabel *notes_, *differ_, *nothing_;
  QToolButton* lock_;
  ColorStrip* difference_strip_;
};

}  // namespace sinkscope
