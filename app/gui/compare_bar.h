// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

#include "app/gui/session.h"

class QComboBox;
class QHBoxLayout;
class QMenu;

namespace sinkscope {

// What is compared: its kind, a chip for each side, which a click takes away, and ways to add more.
class CompareBar : public QWidget {
  Q_OBJECT

 public:
  // How the sides of one kind are taken from a run.
  enum class What {
    head,
    mean_over_heads,
    mean_over_all,
    residual,
    residual_mean,
    norms,
    scores,
  };

  CompareBar(Session& session, QWidget* parent);

  // Another kind: the sides stay and become maps of it, as far as they can; models have gains only.
  void setWhat(What what);
  void setRole(const QString& role);  // of norms
  What what() const;

  // The place that is selected, of the run that is selected; of the model without one.
  CompareItem current() const;
  void addCurrent();
  void addNextLayer();
  void addNextHead();
  // The same place in every open run; gains also of every open model.
  void addEverything();

 private:
  void fillMenu();
  void fillRoles();
  void showItems();
  void followItems();
  void convertItems();
  void add(const std::vector<CompareItem>& items);
  // `item` as a side of what is compared now; of the runs that are open, those that have it.
  std::vector<CompareItem> everywhere() const;
  CompareItem converted(CompareItem item) const;

  Session& session_;
  QComboBox *what_, *role_;
  QMenu* menu_;
  QHBoxLayout* chips_;
};

}  // namespace sinkscope
