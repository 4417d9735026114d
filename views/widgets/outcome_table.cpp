// SPDX-License-Identifier: GPL-3.0-or-later
#include "views/widgets/outcome_table.h"

#include <cmath>

#include "core/number_text.h"

namespace sinkscope {
namespace {

// Nothing where there is nothing; a value that is not a number says so.
QString number(double value) {
  return std::isnan(value) ? QString() : QString::fromStdString(readable(value));
}

}  // namespace

void OutcomeTable::setLines(std::vector<OutcomeLine> lines) {
  beginResetModel();
  lines_ = std::move(lines);
  endResetModel();
}

int OutcomeTable::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(lines_.size());
}

int OutcomeTable::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : n_columns;
}

QVariant OutcomeTable::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || index.row() >= rowCount()) return {};
  if (role == Qt::TextAlignmentRole && index.column() != name)
    return QVariant(Qt::AlignRight | Qt::AlignVCenter);
  if (role != Qt::DisplayRole) return {};
  const OutcomeLine& line = lines_[static_cast<std::size_t>(index.row())];
  switch (index.column()) {
    case name:
      return QString::fromStdString(line.name);
    case before:
      return number(line.before);
    case after:
      return number(line.after);
    default:
      return number(line.after - line.before);
  }
}

QVariant OutcomeTable::headerData(int section, Qt::Orientation orientation, int role) const {
  if (role != Qt::DisplayRole || orientation != Qt::Horizontal) return {};
  switch (section) {
    case name:
      return tr("Metric");
    case before:
      return tr("Before");
    case after:
      return tr("After");
    case change:
      return tr("Difference");
    default:
      return {};
  }
}

QString OutcomeTable::asText() const {
  QString text = QStringLiteral("metric\tbefore\tafter\n");
  for (const OutcomeLine& line : lines_)
    text +=
        QStringLiteral("%1\t%2\t%3\n")
            .arg(QString::fromStdString(line.name), QString::fromStdString(csv_number(line.before)),
                 QString::fromStdString(csv_number(line.after)));
  return text;
}

}  // namespace sinkscope
