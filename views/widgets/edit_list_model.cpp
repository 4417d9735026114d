// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/widgets/edit_list_model.h"

#include <QGuiApplication>
#include <QPalette>

namespace sinkscope {

void EditListModel::setEdits(const EditList& edits) {
  if (edits == edits_) return;
  if (edits.size() == edits_.size()) {
    edits_ = edits;
    emit dataChanged(index(0), index(rowCount() - 1));
    return;
  }
  beginResetModel();
  edits_ = edits;
  endResetModel();
}

int EditListModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(edits_.size());
}

QVariant EditListModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || index.row() >= rowCount()) return {};
  const SwitchedEdit& edit = edits_[static_cast<std::size_t>(index.row())];
  const QString sentence = QString::fromStdString(edit_sentence(edit.edit));
  switch (role) {
    case Qt::DisplayRole:
      return sentence;
    case Qt::ToolTipRole:
      return QString::fromStdString(what_if_text({edit.edit}));
    case Qt::ForegroundRole:
      return edit.is_on ? QVariant() : QVariant(QGuiApplication::palette().placeholderText());
    case Qt::CheckStateRole:
      return static_cast<int>(edit.is_on ? Qt::Checked : Qt::Unchecked);
    default:
      return {};
  }
}

bool EditListModel::setData(const QModelIndex& index, const QVariant& value, int role) {
  if (!index.isValid() || role != Qt::CheckStateRole) return false;
  emit switched(index.row(), value.toInt() == Qt::Checked);
  return true;
}

Qt::ItemFlags EditListModel::flags(const QModelIndex& index) const {
  if (!index.isValid()) return Qt::NoItemFlags;
  return Qt::ItemIsEnabled | Qt::ItemIsSelectable | Qt::ItemIsUserCheckable |
         Qt::ItemNeverHasChildren;
}

}  // namespace sinkscope
