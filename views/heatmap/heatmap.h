// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>
#include <cstdint>
#include <memory>
#include <optional>

#include "core/draw/ticks.h"
#include "views/heatmap/heatmap_scene.h"

class QCustomPlot;
class QLabel;

namespace sinkscope {

struct HeatmapParts;

struct CellAt {
  int row = 0, col = 0;
  bool operator==(const CellAt&) const = default;
};

// One map with its axes. Draws only the cells in view, at the resolution of the screen. The wheel
// zooms at the cursor (with Shift along the columns only, with Ctrl along the rows), dragging
// moves, a double click shows all; the view never leaves the data. It emits what the user does and
// is told everything else, also its own cursor.
class Heatmap : public QWidget {
  Q_OBJECT

 public:
  explicit Heatmap(QWidget* parent = nullptr);
  ~Heatmap() override;

  // Null shows the placeholder. The view stays when the new map has the same size. Says again what
  // is under the mouse: emits cellHovered when a cell was.
  void setScene(std::shared_ptr<const HeatmapScene> scene);
  void setPlaceholder(const QString& text);
  const HeatmapScene* scene() const { return scene_.get(); }

  // Recolors what is shown; the next scene brings its own. `counts` is written under the map
  // ("17 above · max 25,804 · 0 NaN").
  void setRange(const ValueRange& range, const QString& counts);
  void setColormap(const std::string& name);

  // What a pixel shows that stands for several cells, from now on; until then what the scene
  // brings. Of a map of more than kPooledAtOnce cells the old picture stays until setPyramid brings
  // what pyramidWanted asks for.
  void setReduction(Reduction reduction);
  Reduction reduction() const;  // asked for last
  // Dropped unless it is of the shown numbers and of the reduction that was asked for last.
  void setPyramid(const Pyramid& pyramid);
  static constexpr std::int64_t kPooledAtOnce = 1 << 17;  // a fraction of a millisecond

  // In cells; clamped to the grid. Emits nothing.
  void setView(const CellRect& view);
  CellRect view() const { return view_; }
  void resetView();
  // The whole cells that the view touches; nullopt when it shows all.
  std::optional<CellRect> zoomedTo() const;

  // The crosshair, and the frame around a chosen cell; nullopt takes it away.
  void setCursorCell(std::optional<CellAt> cell);
  void setSelectedCell(std::optional<CellAt> cell);
  // Small circles around cells that are pinned.
  void setPinnedCells(std::vector<CellAt> cells);
  const std::vector<CellAt>& pinnedCells() const { return pinned_; }

  // Where things are, in pixels of this widget.
  QRectF plotArea() const;
  QRectF cellRect(int row, int col) const;
  std::optional<CellAt> cellAt(const QPointF& pixel) const;

  // Maps that stand above each other line up when each gets the widest sides that any of them needs
  // for its labels (left, right; pixels).
  std::pair<double, double> neededSides() const;
  void setLeastSides(double left, double right);

  // What is written at the axes now, and under the map ("max |x| of each pixel").
  const std::vector<Tick>& rowTicks() const { return row_ticks_; }
  const std::vector<Tick>& colTicks() const { return col_ticks_; }
  QString note() const { return note_; }

  QSize sizeHint() const override { return {480, 420}; }

 signals:
  void cellHovered(int row, int col);  // (−1, −1) when the cursor leaves the map
  void cellPicked(int row, int col);
  void pyramidWanted(const sinkscope::Grid& grid, sinkscope::Reduction reduction);
  void viewChanged(const sinkscope::CellRect& view);  // by the user

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
  void changeEvent(QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  void applyPalette();
  void applyReduction();
  bool lacksPyramid() const;
  void applyMargins();
  void placeTicks();
  void placeNotes();
  void placeBox();
  void writeTexts();
  void placeCursor();
  void placePins();
  void refresh();
  void moveView(const CellRect& view);
  void zoom(const QPointF& at, double factor, Qt::KeyboardModifiers modifiers);
  void hover(const QPointF& pixel);
  void announceHovered(bool is_still_there);
  void press(QMouseEvent* event);
  void drag(QMouseEvent* event);
  void release(QMouseEvent* event);
  CellRect wholeView() const;
  CellRect clampedView(CellRect view) const;

  std::shared_ptr<const HeatmapScene> scene_;
  QLabel *title_label_, *note_label_, *placeholder_label_;
  QCustomPlot* plot_;
  std::unique_ptr<HeatmapParts> parts_;
  CellRect view_;
  std::optional<Reduction> reduction_;  // asked for by setReduction
  std::optional<CellAt> cursor_, selected_, hovered_;
  std::vector<CellAt> pinned_;
  std::vector<Tick> row_ticks_, col_ticks_;
  QString note_, counts_;
  std::optional<QPointF> press_;  // where the button went down
  CellRect press_view_;
  bool dragging_ = false;
};

}  // namespace sinkscope
