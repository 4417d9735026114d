// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>

#include "core/draw/prepared_map.h"
#include "core/snapshot/residual_snapshot.h"
#include "views/panels/panel.h"

class QCheckBox;
class QComboBox;
class QLabel;

namespace sinkscope {

class Heatmap;
struct CellAt;

// Which residual map the panel asks for; the layer is the selected one.
struct ResidualChoice {
  bool averaged = true;  // mean of |x| over the block states, else one site
  DimOrder order = DimOrder::sorted;
  std::vector<int> given_order;  // of DimOrder::given: kept from what was shown when it was chosen
  bool is_corner = false;        // the first 32 tokens and 32 dimensions, as in 2601.22966
  bool operator==(const ResidualChoice&) const = default;
};

// Tokens downwards, dimensions to the right with their original indices as ticks; in the corner the
// largest |x| and the first-1‰ ratio.
class ResidualPanel : public Panel {
  Q_OBJECT

 public:
  explicit ResidualPanel(QWidget* parent = nullptr);

  // `map` of snapshot->map where it was prepared off this thread, else it is made here. A failure
  // is shown in place of the map.
  void setSnapshot(std::shared_ptr<const ResidualSnapshot> snapshot, PreparedMap map = {},
                   const QString& failure = {});
  void setChoice(const ResidualChoice& choice);  // what the controls show; emits nothing
  const ResidualChoice& choice() const { return choice_; }

  ColorScale colorScale() const override;
  void setRangeRequest(const RangeRequest& request) override;
  QString valuesAsText() const override;
  std::optional<CellRect> zoomedTo() const override;
  void setSelection(const CellRef& selection) override;
  void setPins(const std::vector<CellRef>& pins) override;

  Heatmap& heatmap() { return *heatmap_; }
  // "Max |x| 22,552.0 (token 0, dimension 507)\nFirst 1‰ ratio 94.1 ‰ (1 of 576)"
  static std::string boxText(const ResidualSnapshot& snapshot);

 signals:
  void choiceChanged(const sinkscope::ResidualChoice& choice);

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void readControls();
  void showMap();
  void findScale();
  QString countsText() const;
  std::optional<CellAt> placeOf(const CellRef& cell) const;
  ReadOut readOut(int row, int col) const;

  std::shared_ptr<const ResidualSnapshot> snapshot_;
  PreparedMap map_;  // of snapshot_
  ResidualChoice choice_;
  RangeRequest request_;
  ValueRange range_;
  QString colormap_;
  CellRef selection_;
  std::vector<CellRef> pins_;
  Heatmap* heatmap_;
  QComboBox *what_, *order_;
  QCheckBox* corner_;
  QLabel* source_text_;
};

}  // namespace sinkscope
