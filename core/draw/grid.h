// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <variant>
#include <vector>

namespace sinkscope {

// Cells [begin, end) of one row; empty when begin == end.
struct CellSpan {
  int begin = 0, end = 0;
  bool operator==(const CellSpan&) const = default;
};

// What one cell of a picture is. Masked cells do not exist: transparent, never counted.
enum class CellKind : std::uint8_t { masked, finite, nan, plus_inf, minus_inf };

// Numbers to draw: rows × cols, row-major, immutable. A copy shares the values. They stay as they
// came, float32 or float64: 1e300 and 1e-310 survive. Cells outside the span of their row (the
// upper triangle of a causal map, rows that were not recorded) are masked.
class Grid {
 public:
  Grid() : Grid(0, 0, std::vector<float>()) {}
  // Throws Error{invalid_argument} when the number of values is not rows · cols.
  Grid(int rows, int cols, std::vector<float> values);
  Grid(int rows, int cols, std::vector<double> values);
  // Values that others hold as well; not null.
  Grid(int rows, int cols, std::shared_ptr<const std::vector<float>> values);

  // The same values, of which only the spans exist; one span a row, within [0, cols].
  Grid with_spans(std::vector<CellSpan> spans) const;

  int rows() const { return rows_; }
  int cols() const { return cols_; }
  bool empty() const { return rows_ == 0 || cols_ == 0; }
  std::int64_t size() const { return std::int64_t{rows_} * cols_; }
  bool has_spans() const { return spans_ != nullptr; }
  CellSpan span(int row) const { return spans_ ? (*spans_)[row] : CellSpan{0, cols_}; }
  bool exists(int row, int col) const { return span(row).begin <= col && col < span(row).end; }

  // The stored number, masked or not. row and col are within the grid.
  double at(int row, int col) const;
  CellKind kind(int row, int col) const;

  // Calls f(const float*) or f(const double*) with the values [rows, cols].
  template <class F>
  decltype(auto) visit(F&& f) const {
    return std::visit([&](const auto& values) -> decltype(auto) { return f(values->data()); },
                      values_);
  }

  // The same storage and shape, which makes everything derived from it equal as well.
  bool same_values(const Grid& other) const;

 private:
  template <class T>
  using Shared = std::shared_ptr<const std::vector<T>>;

  int rows_, cols_;
  std::variant<Shared<float>, Shared<double>> values_;
  Shared<CellSpan> spans_;
};

// Row q of a causal map sees the keys 0..q, or with a sliding window only the last `window` of
// them (0: all). `first_row` is the query of the first row.
std::vector<CellSpan> causal_spans(int rows, int cols, int first_row = 0, int window = 0);

CellKind kind_of(double value);

}  // namespace sinkscope
