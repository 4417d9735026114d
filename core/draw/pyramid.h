// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "core/draw/grid.h"

namespace sinkscope {

// What a pixel shows that stands for many cells. max_abs keeps the sign; from_one is the value
// farthest from 1 by ratio, so that among gains both 0.004 and 7 survive.
enum class Reduction { max_abs, min, max, mean, from_one };

std::string_view reduction_text(Reduction reduction);   // "max_abs"
Reduction parse_reduction(std::string_view text);       // throws Error{invalid_argument}
std::string_view reduction_label(Reduction reduction);  // "max |x| of each pixel"

// A rectangle in cell coordinates: cell (r, c) is [r, r+1) × [c, c+1).
struct CellRect {
  double top = 0, left = 0, bottom = 0, right = 0;

  double height() const { return bottom - top; }
  double width() const { return right - left; }
  bool operator==(const CellRect&) const = default;
};

// Pixels of a viewport. A pixel that stands for several cells is masked when none of them exists;
// else NaN when any of them is NaN; else infinite when any is (+ before −); else the reduction of
// its cells. So no NaN and no infinity disappears by zooming out.
struct PooledCells {
  int rows = 0, cols = 0;
  std::vector<double> values;   // [rows, cols]; anything where the kind is not finite
  std::vector<CellKind> kinds;  // [rows, cols]
  bool pooled = false;          // some pixel stands for more than one cell

  double at(int row, int col) const { return values[static_cast<std::size_t>(row) * cols + col]; }
  CellKind kind(int row, int col) const {
    return kinds[static_cast<std::size_t>(row) * cols + col];
  }
};

// One row of such pixels; the pointers are valid during the call.
struct PixelRow {
  int row = 0, cols = 0;
  const double* values = nullptr;   // [cols]
  const CellKind* kinds = nullptr;  // [cols]
  bool repeats = false;             // equals the row above it
};

// A grid with halves, quarters, … of itself, so that any part of it is drawn in time that depends
// on the pixels and not on the cells. Immutable; a copy shares the levels. Needs a third of the
// grid's memory.
class Pyramid {
 public:
  Pyramid() : Pyramid(Grid()) {}
  explicit Pyramid(const Grid& grid, Reduction reduction = Reduction::max_abs);

  const Grid& grid() const { return grid_; }
  Reduction reduction() const { return reduction_; }

  // The view on target_rows × target_cols pixels. Pixels smaller than a cell show the cell under
  // their center. Else each cell of the view belongs to the pixel that holds its center, the ones
  // at the rim to the outermost pixels; above four cells a pixel, blocks at most half a pixel wide
  // belong to every pixel they touch. Pixels outside the grid are masked.
  PooledCells reduced(const CellRect& view, int target_rows, int target_cols) const;
  PooledCells reduced(int target_rows, int target_cols) const;  // all of it

  // The same, handed to `use` row by row without keeping any: for pictures of many pixels. A row
  // that repeats the one before it is handed over as such.
  void reduce_rows(const CellRect& view, int target_rows, int target_cols,
                   const std::function<void(const PixelRow&)>& use) const;
  // The same by several threads, each with a band of rows of its own: `use` is called for different
  // rows at the same time. Only a row of the same band is called a repetition of the one before.
  void reduce_bands(const CellRect& view, int target_rows, int target_cols,
                    const std::function<void(const PixelRow&)>& use) const;

  struct Levels;

 private:
  void reduce(const CellRect& view, int target_rows, int target_cols, int n_bands,
              const std::function<void(const PixelRow&)>& use) const;

  Grid grid_;
  Reduction reduction_;
  std::shared_ptr<const Levels> levels_;
};

}  // namespace sinkscope
