// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

#include "app/gui/pyramid_maker.h"
#include "app/gui/session.h"
#include "views/panels/panel.h"
#include "views/widgets/pin_table.h"

class QLabel;
class QTableView;
class QToolButton;

namespace sinkscope {

class ColorBar;
class FindingsList;

// The right column: what the colors mean, what is under the cursor, what was found, what is pinned.
class ReadingColumn : public QWidget {
  Q_OBJECT

 public:
  ReadingColumn(Session& session, QWidget* parent);

  void setPanel(Panel* panel);  // whose range is shown; null = none
  void stepRange(int by);       // the next or previous range mode
  void pin();                   // what is under the cursor, or was last
  QString pinsAsText() const { return pins_.asText(); }

  const PinTable& pins() const { return pins_; }
  const FindingsList& findings() const { return *findings_; }
  ColorBar& colorBar() { return *bar_; }
  QString cursorText() const;

 signals:
  void picked(const sinkscope::CellRef& cell);

 private:
  void build();
  void showScale();
  void showReadOut(const ReadOut& readOut);
  void remember(const ReadOut& readOut);
  void showPinValues();
  void fitTable();

  Session& session_;
  PyramidMaker pyramids_;
  Panel* panel_ = nullptr;
  ColorBar* bar_;
  QLabel* cursor_;
  QToolButton* pin_button_;
  FindingsList* findings_;
  QTableView* table_;
  QLabel *pins_heading_ = nullptr, *findings_heading_ = nullptr;
  PinTable pins_;
  ReadOut last_;
  QString last_run_;  // whose last_ is: a column of the pins
};

}  // namespace sinkscope
