// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractTableModel>
#include <vector>

#include "core/snapshot/what_if_snapshot.h"

namespace sinkscope {

// Numbers before and after an edit, one line each.
class OutcomeTable : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Column { name, before, after, change, n_columns };

  using QAbstractTableModel::QAbstractTableModel;

  void setLines(std::vector<OutcomeLine> lines);
  QString asText() const;  // tab-separated, with a header line

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  std::vector<OutcomeLine> lines_;
};

}  // namespace sinkscope
