// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>
#include <vector>

#include "core/snapshot/cell_ref.h"
#include "core/snapshot/overview_snapshot.h"

class QLabel;
class QVBoxLayout;

namespace sinkscope {

// What was found, as sentences, each with its criterion; a click on one goes to its place.
class FindingsList : public QWidget {
  Q_OBJECT

 public:
  explicit FindingsList(QWidget* parent = nullptr);

  void setFindings(const std::vector<Finding>& findings);
  int count() const { return static_cast<int>(labels_.size()); }
  QString text(int index) const;  // sentence and criterion

 signals:
  void picked(const sinkscope::CellRef& cell);

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void rebuild();

  QVBoxLayout* layout_;
  std::vector<Finding> findings_;
  std::vector<QLabel*> labels_;
};

}  // namespace sinkscope
