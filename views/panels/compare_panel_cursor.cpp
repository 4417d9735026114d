// SPDX-License-Identifier: GPL-3.0-or-later
// What links the maps of a comparison: view, cursor, read-out, selection.
#include <algorithm>

#include "core/number_text.h"
#include "views/heatmap/heatmap.h"
#include "views/panels/compare_link.h"
#include "views/panels/compare_panel.h"

namespace sinkscope {

namespace {

// [from, to) of one axis on the other; what cannot be linked stays as it is.
std::pair<double, double> linked(double from, double to, const CellNumbers& source,
                                 const CellNumbers& target, std::pair<double, double> present) {
  const auto a = linked_place(from, source, target), b = linked_place(to, source, target);
  return a && b ? std::pair(*a, *b) : present;
}

}  // namespace

void ComparePanel::linkView(std::size_t from) {
  if (from >= mapCount()) return;
  const CellRect view = maps_[from]->view();
  const Shown source = shown(from);
  for (std::size_t i = 0; i < mapCount(); ++i) {
    if (i == from) continue;
    const Shown target = shown(i);
    const CellRect own = maps_[i]->view();
    const auto rows =
        linked(view.top, view.bottom, *source.rows, *target.rows, {own.top, own.bottom});
    const auto cols =
        linked(view.left, view.right, *source.cols, *target.cols, {own.left, own.right});
    maps_[i]->setView({rows.first, cols.first, rows.second, cols.second});
  }
}

void ComparePanel::linkCursor(std::size_t from, int row, int col) {
  if (from >= mapCount()) return;
  const Shown source = shown(from);
  for (std::size_t i = 0; i < mapCount(); ++i) {
    const Shown target = shown(i);
    const int r = linked_cell(row, *source.rows, *target.rows);
    const int c = linked_cell(col, *source.cols, *target.cols);
    maps_[i]->setCursorCell(r >= 0 && c >= 0 ? std::optional(CellAt{r, c}) : std::nullopt);
  }
}

CellRef ComparePanel::cellOf(std::size_t i, int row, int col) const {
  CellRef cell;
  if (i >= mapCount() || row < 0 || col < 0) return cell;
  const Shown map = shown(i);
  const int r = (*map.rows)[static_cast<std::size_t>(row)];
  const int c = (*map.cols)[static_cast<std::size_t>(col)];
  switch (map.labels->kind) {
    case MapKind::attention:
      cell.query = r;
      cell.key = cell.token = c;
      break;
    case MapKind::residual:
      cell.token = r;
      cell.dim = c;
      break;
    case MapKind::norms:
      cell.layer = r;
      cell.dim = c;
      break;
    case MapKind::scores:
      cell.head = r;
      cell.layer = c;
  }
  return cell;
}

// The place once, then the value that each map has there.
ReadOut ComparePanel::readOut(std::size_t from, int row, int col) const {
  ReadOut out;
  if (from >= mapCount() || row < 0 || col < 0) return out;
  out.cell = cellOf(from, row, col);
  const Shown source = shown(from);
  const auto number = [](const std::vector<int>& numbers, int i) {
    return QString::number(numbers[static_cast<std::size_t>(i)]);
  };
  const MapKind kind = source.labels->kind;
  out.place = QStringLiteral("%1 %2, %3 %4")
                  .arg(tr(axis_title(kind, true)), number(*source.rows, row),
                       tr(axis_title(kind, false)), number(*source.cols, col));
  out.lines << out.place;
  for (std::size_t i = 0; i < mapCount(); ++i) {
    const Shown map = shown(i);
    const int r = linked_cell(row, *source.rows, *map.rows);
    const int c = linked_cell(col, *source.cols, *map.cols);
    const bool there = r >= 0 && c >= 0 && map.grid->exists(r, c);
    const QString value =
        there ? QString::fromStdString(readable(map.grid->at(r, c))) : tr("not there");
    out.lines << QStringLiteral("%1: %2").arg(QString::fromStdString(map.title), value);
    if (i == from) out.value = value;
  }
  return out;
}

std::optional<CellAt> ComparePanel::placeOf(std::size_t i, const CellRef& cell) const {
  const Shown map = shown(i);
  const MapKind kind = map.labels->kind;
  const int row = kind == MapKind::attention  ? cell.query
                  : kind == MapKind::norms    ? cell.layer
                  : kind == MapKind::residual ? cell.token
                                              : cell.head;
  const int col = kind == MapKind::attention ? cell.key
                  : kind == MapKind::scores  ? cell.layer
                                             : cell.dim;
  const int r = row < 0 ? -1 : linked_cell(0, {row}, *map.rows);
  const int c = col < 0 ? -1 : linked_cell(0, {col}, *map.cols);
  return r >= 0 && c >= 0 ? std::optional(CellAt{r, c}) : std::nullopt;
}

void ComparePanel::setSelection(const CellRef& selection) {
  selection_ = selection;
  for (std::size_t i = 0; i < mapCount(); ++i) maps_[i]->setSelectedCell(placeOf(i, selection));
}

void ComparePanel::setPins(const std::vector<CellRef>& pins) {
  pins_ = pins;
  for (std::size_t i = 0; i < mapCount(); ++i) {
    std::vector<CellAt> cells;
    for (const CellRef& pin : pins_)
      if (const auto cell = placeOf(i, pin)) cells.push_back(*cell);
    maps_[i]->setPinnedCells(std::move(cells));
  }
}

}  // namespace sinkscope
