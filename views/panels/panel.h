// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QMetaType>
#include <QString>
#include <QStringList>
#include <QWidget>
#include <optional>
#include <vector>

#include "core/draw/prepared_map.h"
#include "core/figure/made_file.h"
#include "core/snapshot/pinned_value.h"

namespace sinkscope {

// What is under the cursor, or picked: where it is, and its value in words.
struct ReadOut {
  QStringList lines;  // "query 24 “the”", "key 0 “The”", "0.061"; empty = nothing is there
  CellRef cell;
  QString place, value;  // for the table of pins: "L15H5 · q24 k0", "0.061"
  PinnedCell pin = {};   // what other runs have there
};

// The numbers and colors of a picture, as the one color bar beside it shows them.
struct ColorScale {
  std::vector<Grid> grids;  // all pictures that share the range; empty = the panel has none
  RangeRequest request;
  ValueRange range;
  QString colormap;                // name of core/draw/colormap.h
  QString quantity;                // "attention probability"
  bool is_one_of_several = false;  // each picture has its own range; this is the first one's
  RangeFinder ranges = {};         // of `grids`, where they are large

  RangeSummary summary() const {
    return ranges.grids().empty() ? summarize(grids, range) : ranges.summary(range);
  }
};

// A picture of the middle of the window. A panel is handed one immutable snapshot (setSnapshot of
// the derived class; null shows why there is nothing), draws it, and says what the user wants.
class Panel : public QWidget {
  Q_OBJECT

 public:
  explicit Panel(QWidget* parent = nullptr) : QWidget(parent) {}

  virtual ColorScale colorScale() const { return {}; }
  virtual void setRangeRequest(const RangeRequest& /*request*/) {}
  // The numbers of the picture, as far as it is visible, with row and column names: a table of
  // tab-separated values.
  virtual QString valuesAsText() const { return {}; }
  // The part of its map that is zoomed to, in whole cells; nullopt = all of it, or several maps of
  // which none leads.
  virtual std::optional<CellRect> zoomedTo() const { return std::nullopt; }
  // The figure of what is shown, where that is not the session's to say; nullopt = it is.
  virtual std::optional<FigureRequest> figureRequest() const { return std::nullopt; }
  // The files of that figure that go with the window.
  virtual std::vector<MadeFile> madeFiles() const { return {}; }
  // Marks what is selected for all panels.
  virtual void setSelection(const CellRef& /*selection*/) {}
  // Marks what is pinned, wherever it is here.
  virtual void setPins(const std::vector<CellRef>& /*pins*/) {}

 signals:
  void hovered(const sinkscope::ReadOut& readOut);
  void picked(const sinkscope::CellRef& cell);
  void pinAsked(const sinkscope::ReadOut& readOut);
  void colorScaleChanged();
  void exportAsked();  // what figureRequest() says
};

}  // namespace sinkscope

Q_DECLARE_METATYPE(sinkscope::ReadOut)
Q_DECLARE_METATYPE(sinkscope::CellRef)
