// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

#include "app/gui/session.h"

class QComboBox;
class QHBoxLayout;

namespace sinkscope {

// What is compared: a chip for each side, which a click takes away, and ways to add more.
class CompareBar : public QWidget {
  Q_OBJECT

 public:
  CompareBar(Session& session, QWidget* parent);

  // The selected head (or layer of the residual stream) of the selected run.
  CompareItem current() const;
  void addCurrent();
  // The same place in every open run.
  void addRuns();
  // The selected place and the same one a layer later.
  void addNextLayer();

 private:
  void rebuild();
  void add(const std::vector<CompareItem>& items);

  Session& session_;
  QComboBox* kind_;
  QHBoxLayout* chips_;
};

}  // namespace sinkscope
