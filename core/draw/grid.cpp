// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace sinkscope {

namespace {

void require_shape(int rows, int cols, std::size_t n_values) {
  if (rows < 0 || cols < 0 || std::int64_t{rows} * cols != static_cast<std::int64_t>(n_values))
    throw Error(ErrorKind::invalid_argument,
                fmt::format("a grid of {} × {} cells got {} values", rows, cols, n_values));
}

}  // namespace

Grid::Grid(int rows, int cols, std::vector<float> values) : rows_(rows), cols_(cols) {
  require_shape(rows, cols, values.size());
  values_ = std::make_shared<const std::vector<float>>(std::move(values));
}

Grid::Grid(int rows, int cols, std::vector<double> values) : rows_(rows), cols_(cols) {
  require_shape(rows, cols, values.size());
  values_ = std::make_shared<const std::vector<double>>(std::move(values));
}

Grid::Grid(int rows, int cols, std::shared_ptr<const std::vector<float>> values)
    : rows_(rows), cols_(cols) {
  require_shape(rows, cols, values->size());
  values_ = std::move(values);
}

Grid Grid::with_spans(std::vector<CellSpan> spans) const {
  if (static_cast<int>(spans.size()) != rows_)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("a grid of {} rows got {} spans", rows_, spans.size()));
  for (const CellSpan& span : spans)
    if (span.begin < 0 || span.begin > span.end || span.end > cols_)
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("span {}..{} in a grid of {} columns", span.begin, span.end, cols_));
  Grid masked = *this;
  masked.spans_ = std::make_shared<const std::vector<CellSpan>>(std::move(spans));
  return masked;
}

double Grid::at(int row, int col) const {
  const std::int64_t i = std::int64_t{row} * cols_ + col;
  return visit([i](const auto* values) { return static_cast<double>(values[i]); });
}

CellKind Grid::kind(int row, int col) const {
  return exists(row, col) ? kind_of(at(row, col)) : CellKind::masked;
}

bool Grid::same_values(const Grid& other) const {
  return rows_ == other.rows_ && cols_ == other.cols_ && values_ == other.values_ &&
         spans_ == other.spans_;
}

std::vector<CellSpan> causal_spans(int rows, int cols, int first_row, int window) {
  std::vector<CellSpan> spans(rows);
  for (int r = 0; r < rows; ++r) {
    const int end = std::clamp(first_row + r + 1, 0, cols);
    spans[r] = {window > 0 ? std::clamp(first_row + r + 1 - window, 0, end) : 0, end};
  }
  return spans;
}

CellKind kind_of(double value) {
  if (std::isnan(value)) return CellKind::nan;
  if (std::isinf(value)) return value > 0 ? CellKind::plus_inf : CellKind::minus_inf;
  return CellKind::finite;
}

}  // namespace sinkscope
