// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <memory>
#include <vector>

#include "core/draw/prepared_map.h"
#include "core/snapshot/attention_snapshot.h"
#include "core/snapshot/thumbnail_snapshot.h"
#include "views/panels/panel.h"

class QComboBox;
class QLabel;
class QStackedWidget;

namespace sinkscope {

class Heatmap;
struct CellAt;
class KeyMassStrip;
class ThumbnailGrid;

// Which map the panel asks for.
struct AttentionChoice {
  bool is_grid = false;  // thumbnails of all heads instead of one map
  Combine combine = Combine::single;
  bool all_layers = false;  // a combined map: over all layers, else over the selected one
  AttentionView view = AttentionView::raw;
  AttentionSource source = AttentionSource::automatic;
  bool one_head = false;  // over all layers: of the selected head alone
  bool operator==(const AttentionChoice&) const = default;
};

// One attention map with tokens on both axes and the mass of each key below it; or thumbnails of
// all heads of all layers.
class AttentionPanel : public Panel {
  Q_OBJECT

 public:
  explicit AttentionPanel(QWidget* parent = nullptr);

  // `map` of snapshot->map where it was prepared off this thread, else it is made here. A failure
  // is shown in place of the map.
  void setSnapshot(std::shared_ptr<const AttentionSnapshot> snapshot, PreparedMap map = {},
                   const QString& failure = {});
  void setThumbnails(std::shared_ptr<const ThumbnailSnapshot> snapshot, RangeFinder ranges = {});
  void setChoice(const AttentionChoice& choice);  // what the controls show; emits nothing
  const AttentionChoice& choice() const { return choice_; }

  ColorScale colorScale() const override;
  void setRangeRequest(const RangeRequest& request) override;
  QString valuesAsText() const override;
  std::optional<CellRect> zoomedTo() const override;
  void setSelection(const CellRef& selection) override;
  void setPins(const std::vector<CellRef>& pins) override;

  Heatmap& heatmap() { return *heatmap_; }
  const KeyMassStrip& keyMass() const { return *key_mass_; }
  const ThumbnailGrid& grid() const { return *grid_; }

 signals:
  void choiceChanged(const sinkscope::AttentionChoice& choice);

 protected:
  void resizeEvent(QResizeEvent* event) override;
  void showEvent(QShowEvent* event) override;

 private:
  void build();
  void readControls();
  void showMap();
  void showThumbnailRange();
  void alignKeyMass();
  std::optional<CellAt> placeOf(const CellRef& cell) const;
  ReadOut readOut(int row, int col) const;
  ReadOut tileReadOut(int layer_slot, int head) const;

  std::shared_ptr<const AttentionSnapshot> snapshot_;
  std::shared_ptr<const ThumbnailSnapshot> thumbnails_;
  PreparedMap map_;               // of snapshot_
  RangeFinder thumbnail_ranges_;  // of thumbnails_
  AttentionChoice choice_;
  RangeRequest request_;
  CellRef selection_;
  std::vector<CellRef> pins_;
  Heatmap* heatmap_;
  KeyMassStrip* key_mass_;
  ThumbnailGrid* grid_;
  QStackedWidget* stack_;
  QComboBox *what_, *view_, *source_;
  QLabel* source_text_;
};

}  // namespace sinkscope
