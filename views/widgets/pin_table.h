// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractTableModel>
#include <QString>
#include <vector>

#include "core/snapshot/cell_ref.h"

namespace sinkscope {

// A cell that the user keeps an eye on.
struct Pin {
  CellRef cell;
  QString where;  // run and capture it was read from
  QString place;  // "blocks.11 · token 0 · dim 507"
  QString value;  // as it was shown
};

// The pins as a table: place, value, where.
class PinTable : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Column { place, value, where, n_columns };

  using QAbstractTableModel::QAbstractTableModel;

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
  bool removeRows(int row, int count, const QModelIndex& parent = {}) override;

  void add(Pin pin);  // a cell of the same place and origin gets its new value
  const Pin& pin(int row) const { return pins_[static_cast<std::size_t>(row)]; }
  QString asText() const;  // tab-separated, with a header line

 private:
  std::vector<Pin> pins_;
};

}  // namespace sinkscope
