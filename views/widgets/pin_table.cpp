// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/widgets/pin_table.h"

#include <algorithm>
#include <iterator>

namespace sinkscope {

int PinTable::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(pins_.size());
}

int PinTable::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : first_run + static_cast<int>(columns().size());
}

QStringList PinTable::columns() const {
  QStringList all = runs_;
  for (const Pin& pin : pins_)
    if (!all.contains(pin.where)) all << pin.where;
  return all;
}

// What a run has there now; of the run it was read from, what was shown.
QString PinTable::text(const Pin& pin, const QString& column) const {
  if (pin.where == column) return pin.value;
  const auto found = std::find(valued_.begin(), valued_.end(), pin.what);
  const auto run = runs_.indexOf(column);
  if (found == valued_.end() || run < 0) return {};
  return values_[static_cast<std::size_t>(found - valued_.begin())].value(run);
}

QVariant PinTable::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const Pin& pin = pins_[static_cast<std::size_t>(index.row())];
  if (index.column() == place) {
    if (role == Qt::DisplayRole || role == Qt::ToolTipRole) return pin.place;
    return {};
  }
  const QString column = columns().value(index.column() - first_run);
  const QString value = text(pin, column);
  if (role == Qt::TextAlignmentRole) return QVariant(Qt::AlignRight | Qt::AlignVCenter);
  if (role == Qt::ToolTipRole)
    return QStringLiteral("%1, %2: %3").arg(column, pin.place, value.isEmpty() ? tr("–") : value);
  return role == Qt::DisplayRole ? QVariant(value.isEmpty() ? QStringLiteral("–") : value)
                                 : QVariant();
}

QVariant PinTable::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal) return {};
  if (role != Qt::DisplayRole && role != Qt::ToolTipRole) return {};
  return section == place ? tr("Cell") : columns().value(section - first_run);
}

bool PinTable::removeRows(int row, int count, const QModelIndex& parent) {
  if (parent.isValid() || row < 0 || count <= 0 || row + count > rowCount()) return false;
  // Columns may go with them.
  beginResetModel();
  pins_.erase(std::next(pins_.begin(), row), std::next(pins_.begin(), row + count));
  endResetModel();
  return true;
}

void PinTable::add(Pin pin) {
  beginResetModel();
  const auto same = std::find_if(pins_.begin(), pins_.end(), [&](const Pin& other) {
    const bool is_alone = pin.what.quantity == PinnedCell::Quantity::shown;
    return other.place == pin.place && other.what == pin.what &&
           (!is_alone || other.where == pin.where);
  });
  if (same != pins_.end())
    *same = std::move(pin);
  else
    pins_.push_back(std::move(pin));
  endResetModel();
}

std::vector<PinnedCell> PinTable::cells() const {
  std::vector<PinnedCell> cells;
  for (const Pin& pin : pins_) cells.push_back(pin.what);
  return cells;
}

void PinTable::setValues(const QStringList& runs, const std::vector<PinnedCell>& cells,
                         const std::vector<QStringList>& values) {
  beginResetModel();
  runs_ = runs;
  valued_ = cells;
  values_ = values;
  endResetModel();
}

QString PinTable::asText() const {
  const QStringList names = columns();
  QString all = QStringLiteral("cell\t") + names.join(QLatin1Char('\t')) + QLatin1Char('\n');
  for (const Pin& pin : pins_) {
    all += pin.place;
    for (const QString& name : names) all += QLatin1Char('\t') + text(pin, name);
    all += QLatin1Char('\n');
  }
  return all;
}

}  // namespace sinkscope
