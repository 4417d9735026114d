// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractTableModel>
#include <QString>
#include <QStringList>
#include <vector>

#include "core/snapshot/pinned_value.h"

namespace sinkscope {

// A cell that the user keeps an eye on.
struct Pin {
  PinnedCell what;
  QString place;  // "L11 · t0 d507"
  QString value;  // as it was shown
  QString where;  // run or model it was read from: the name of a column
};

// The pins as a table: a row a pin, a column for each run that is open, so that a cell is followed
// through all of them.
class PinTable : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Column { place, first_run };

  using QAbstractTableModel::QAbstractTableModel;

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
  bool removeRows(int row, int count, const QModelIndex& parent = {}) override;

  void add(Pin pin);  // one of the same place replaces the one that is there
  const Pin& pin(int row) const { return pins_[static_cast<std::size_t>(row)]; }
  std::vector<PinnedCell> cells() const;

  // The runs that are open, and what each pin of `cells` is in each of them: [pin][run], "" where a
  // run has no such cell. Pins that came meanwhile keep what they had.
  void setValues(const QStringList& runs, const std::vector<PinnedCell>& cells,
                 const std::vector<QStringList>& values);

  QString asText() const;  // tab-separated, with a header line

 private:
  QString text(const Pin& pin, const QString& column) const;
  QStringList columns() const;  // the runs, then where else pins come from

  std::vector<Pin> pins_;
  QStringList runs_;
  std::vector<PinnedCell> valued_;
  std::vector<QStringList> values_;
};

}  // namespace sinkscope
