// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/widgets/pin_table.h"

#include <algorithm>
#include <iterator>

namespace sinkscope {

int PinTable::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(pins_.size());
}

int PinTable::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : n_columns;
}

QVariant PinTable::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const Pin& pin = pins_[static_cast<std::size_t>(index.row())];
  if (role == Qt::TextAlignmentRole && index.column() == value)
    return QVariant(Qt::AlignRight | Qt::AlignVCenter);
  if (role == Qt::ToolTipRole) return QStringLiteral("%1: %2").arg(pin.where, pin.place);
  if (role != Qt::DisplayRole) return {};
  switch (index.column()) {
    case place:
      return pin.place;
    case value:
      return pin.value;
    default:
      return pin.where;
  }
}

QVariant PinTable::headerData(int section, Qt::Orientation orientation, int role) const {
  if (role != Qt::DisplayRole || orientation != Qt::Horizontal) return {};
  switch (section) {
    case place:
      return tr("Cell");
    case value:
      return tr("Value");
    case where:
      return tr("Run");
    default:
      return {};
  }
}

bool PinTable::removeRows(int row, int count, const QModelIndex& parent) {
  if (parent.isValid() || row < 0 || count <= 0 || row + count > rowCount()) return false;
  beginRemoveRows(parent, row, row + count - 1);
  pins_.erase(std::next(pins_.begin(), row), std::next(pins_.begin(), row + count));
  endRemoveRows();
  return true;
}

void PinTable::add(Pin pin) {
  const auto same = std::find_if(pins_.begin(), pins_.end(), [&](const Pin& other) {
    return other.place == pin.place && other.where == pin.where;
  });
  if (same != pins_.end()) {
    const int row = static_cast<int>(same - pins_.begin());
    *same = std::move(pin);
    emit dataChanged(index(row, 0), index(row, n_columns - 1));
    return;
  }
  beginInsertRows({}, rowCount(), rowCount());
  pins_.push_back(std::move(pin));
  endInsertRows();
}

QString PinTable::asText() const {
  QString text = QStringLiteral("cell\tvalue\trun\n");
  for (const Pin& pin : pins_)
    text += QStringLiteral("%1\t%2\t%3\n").arg(pin.place, pin.value, pin.where);
  return text;
}

}  // namespace sinkscope
