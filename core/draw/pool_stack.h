// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace sinkscope {

// How two cells become one, and the value that changes nothing.
struct PoolMaxAbs {
  template <class T>
  static T join(T a, T b) {
    return std::abs(a) >= std::abs(b) ? a : b;
  }
  template <class T>
  static constexpr T neutral = 0;
};
// Farthest from 1 by ratio: 0.004 before 3, 0 before everything.
struct PoolFromOne {
  template <class T>
  static T ratio(T x) {
    return std::abs(x) >= 1 ? std::abs(x) : 1 / std::abs(x);
  }
  template <class T>
  static T join(T a, T b) {
    return ratio(a) >= ratio(b) ? a : b;
  }
  template <class T>
  static constexpr T neutral = 1;
};
struct PoolMin {
  template <class T>
  static T join(T a, T b) {
    return a < b ? a : b;
  }
  template <class T>
  static constexpr T neutral = std::numeric_limits<T>::max();
};
struct PoolMax {
  template <class T>
  static T join(T a, T b) {
    return a > b ? a : b;
  }
  template <class T>
  static constexpr T neutral = std::numeric_limits<T>::lowest();
};
struct PoolSum {
  template <class T>
  static T join(T a, T b) {
    return a + b;
  }
  template <class T>
  static constexpr T neutral = 0;
};
struct PoolOr {
  static std::uint8_t join(std::uint8_t a, std::uint8_t b) { return a | b; }
  template <class T>
  static constexpr T neutral = 0;
};

// The cells or blocks of one axis that each pixel stands for: [begin[i], end[i]), empty outside.
struct PixelEdges {
  std::vector<int> begin, end;
  int size() const { return static_cast<int>(begin.size()); }
};

// A plane of numbers halved again and again. Level 0 stays where it is: `source` hands out its
// rows, row(r, first, n, buffer) -> const T*, in the buffer or wherever they lie.
template <class T, class Op>
class PoolStack {
 public:
  template <class Source>
  PoolStack(int rows, int cols, const Source& source) : rows_(rows), cols_(cols) {
    if (rows == 0 || cols == 0) return;
    std::vector<T> upper(cols), lower(cols);
    for (int level = 1; rows > 1 || cols > 1; ++level) {
      const int out_rows = (rows + 1) / 2, out_cols = (cols + 1) / 2;
      std::vector<T> out(static_cast<std::size_t>(out_rows) * out_cols);
      for (int r = 0; r < out_rows; ++r) {
        const T* a = row(level - 1, 2 * r, 0, cols, source, upper.data());
        const T* b =
            2 * r + 1 < rows ? row(level - 1, 2 * r + 1, 0, cols, source, lower.data()) : nullptr;
        halve(a, b, cols, upper.data(), out.data() + static_cast<std::size_t>(r) * out_cols);
      }
      levels_.push_back(std::move(out));
      rows = out_rows;
      cols = out_cols;
    }
  }

  // Joins the blocks of one level to pixels, a row of pixels at a time.
  template <class Source>
  class Pixels {
   public:
    Pixels(const PoolStack& stack, const Source& source, int level, const PixelEdges& rows,
           const PixelEdges& cols)
        : stack_(stack), source_(source), level_(level), rows_(rows), cols_(cols) {
      first_ = *std::min_element(cols.begin.begin(), cols.begin.end());
      n_ = std::max(0, *std::max_element(cols.end.begin(), cols.end.end()) - first_);
      line_.resize(n_);
      buffer_.resize(n_);
    }

    // out [cols.size()]: what the blocks of each pixel of row i join to.
    template <class Out>
    void row(int i, Out* out) {
      std::fill(line_.begin(), line_.end(), Op::template neutral<T>);
      for (int r = rows_.begin[i]; r < rows_.end[i] && n_ > 0; ++r) {
        const T* values = stack_.row(level_, r, first_, n_, source_, buffer_.data());
        for (int c = 0; c < n_; ++c) line_[c] = Op::join(line_[c], values[c]);
      }
      for (int j = 0; j < cols_.size(); ++j) {
        T joined = Op::template neutral<T>;
        for (int c = cols_.begin[j]; c < cols_.end[j]; ++c)
          joined = Op::join(joined, line_[c - first_]);
        out[j] = static_cast<Out>(joined);
      }
    }

   private:
    const PoolStack& stack_;
    const Source& source_;
    int level_, first_ = 0, n_ = 0;
    const PixelEdges &rows_, &cols_;
    std::vector<T> line_, buffer_;
  };

 private:
  template <class Source>
  const T* row(int level, int r, int first, int n, const Source& source, T* buffer) const {
    if (level == 0) return source.row(r, first, n, buffer);
    const std::size_t width = (static_cast<std::size_t>(cols_) + (1u << level) - 1) >> level;
    return levels_[level - 1].data() + r * width + first;
  }

  // Rows first, which the compiler turns into vector instructions; `joined` may be `a`.
  static void halve(const T* a, const T* b, int cols, T* joined, T* out) {
    if (b != nullptr) {
      for (int c = 0; c < cols; ++c) joined[c] = Op::join(a[c], b[c]);
      a = joined;
    }
    for (int c = 0; c < cols / 2; ++c) out[c] = Op::join(a[2 * c], a[2 * c + 1]);
    if (cols % 2 != 0) out[cols / 2] = a[cols - 1];
  }

  int rows_, cols_;
  std::vector<std::vector<T>> levels_;
};

}  // namespace sinkscope
