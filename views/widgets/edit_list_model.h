// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAbstractListModel>

#include "core/what_if/edit_list.h"

namespace sinkscope {

// The list of edits, a check box each. It shows what it is given: a click on a box only asks.
class EditListModel : public QAbstractListModel {
  Q_OBJECT

 public:
  using QAbstractListModel::QAbstractListModel;

  void setEdits(const EditList& edits);
  const EditList& edits() const { return edits_; }

  int rowCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  bool setData(const QModelIndex& index, const QVariant& value, int role) override;
  Qt::ItemFlags flags(const QModelIndex& index) const override;

 signals:
  void switched(int row, bool on);

 private:
  EditList edits_;
};

}  // namespace sinkscope
