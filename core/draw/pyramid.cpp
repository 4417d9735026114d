// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/pyramid.h"

#include <optional>
#include <thread>

#include "core/draw/grid_rows.h"
#include "core/draw/pool_stack.h"

namespace sinkscope {

namespace {

constexpr std::uint8_t kHasNan = 1, kHasPlusInf = 2, kHasMinusInf = 4;

// Finite existing cells as they are, everything else as the neutral value.
template <class T, class Op>
struct FiniteCells {
  const Grid& grid;
  bool any_special;

  const T* row(int r, int first, int n, T* buffer) const {
    return grid.visit([&](const auto* values) {
      using Stored = std::decay_t<decltype(*values)>;
      const Stored* cells = values + std::int64_t{r} * grid.cols() + first;
      const CellSpan span = grid.span(r);
      const int begin = std::clamp(span.begin - first, 0, n);
      const int end = std::clamp(span.end - first, begin, n);
      if constexpr (std::is_same_v<T, Stored>)
        if (!any_special && begin == 0 && end == n) return static_cast<const T*>(cells);
      std::fill(buffer, buffer + begin, Op::template neutral<T>);
      if (any_special)
        for (int c = begin; c < end; ++c)
          buffer[c] = cells[c] - cells[c] == 0 ? static_cast<T>(cells[c]) : Op::template neutral<T>;
      else
        std::copy(cells + begin, cells + end, buffer + begin);
      std::fill(buffer + end, buffer + n, Op::template neutral<T>);
      return static_cast<const T*>(buffer);
    });
  }
};

struct SpecialFlags {
  const Grid& grid;

  const std::uint8_t* row(int r, int first, int n, std::uint8_t* buffer) const {
    for (int c = 0; c < n; ++c) switch (grid.kind(r, first + c)) {
        case CellKind::nan:
          buffer[c] = kHasNan;
          break;
        case CellKind::plus_inf:
          buffer[c] = kHasPlusInf;
          break;
        case CellKind::minus_inf:
          buffer[c] = kHasMinusInf;
          break;
        default:
          buffer[c] = 0;
      }
    return buffer;
  }
};

struct FiniteCounts {
  const Grid& grid;

  const std::uint32_t* row(int r, int first, int n, std::uint32_t* buffer) const {
    for (int c = 0; c < n; ++c) buffer[c] = grid.kind(r, first + c) == CellKind::finite;
    return buffer;
  }
};

bool has_special(const Grid& grid) {
  bool found = false;
  for_each_row(grid, [&](int, int, const auto* values, int n) {
    int odd = 0;
    for (int i = 0; i < n; ++i) odd += !(values[i] - values[i] == 0);
    found = found || odd > 0;
  });
  return found;
}

bool is_float(const Grid& grid) {
  return grid.visit([](const auto* values) { return sizeof(*values) == sizeof(float); });
}

// The cells that each of n pixels over [from, to) stands for, cut to [0, size).
PixelEdges pixel_edges(double from, double to, int n, int size) {
  PixelEdges edges;
  const double step = (to - from) / n;
  const auto cell = [&](double at) {
    return static_cast<int>(std::clamp(std::floor(at), -1.0, static_cast<double>(size)));
  };
  // The first cell of pixel i: the one whose center comes first.
  const auto edge = [&](int i) {
    if (i == 0) return cell(from);
    return i == n ? cell(std::ceil(to)) : cell(from + i * step + 0.5);
  };
  for (int i = 0; i < n; ++i) {
    const int begin = step > 1 ? edge(i) : cell(from + (i + 0.5) * step);
    const int end = step > 1 ? std::max(begin + 1, edge(i + 1)) : begin + 1;
    edges.begin.push_back(std::clamp(begin, 0, size));
    edges.end.push_back(std::clamp(end, edges.begin.back(), size));
  }
  return edges;
}

PixelEdges block_edges(const PixelEdges& cells, int level) {
  PixelEdges blocks = cells;
  for (int i = 0; i < cells.size(); ++i) {
    blocks.begin[i] = cells.begin[i] >> level;
    blocks.end[i] =
        cells.begin[i] < cells.end[i] ? ((cells.end[i] - 1) >> level) + 1 : blocks.begin[i];
  }
  return blocks;
}

// Marks the pixels that stand for a cell of `span`.
void mark_existing(const CellSpan& span, const PixelEdges& cols, CellKind* kinds) {
  const auto first = std::upper_bound(cols.end.begin(), cols.end.end(), span.begin);
  const auto last = std::lower_bound(cols.begin.begin(), cols.begin.end(), span.end);
  for (auto j = first - cols.end.begin(); j < last - cols.begin.begin(); ++j)
    if (cols.begin[j] < cols.end[j]) kinds[j] = CellKind::finite;
}

CellKind kind_of_flags(std::uint8_t flags) {
  if (flags & kHasNan) return CellKind::nan;
  return flags & kHasPlusInf ? CellKind::plus_inf : CellKind::minus_inf;
}

}  // namespace

struct Pyramid::Levels {
  template <class Op>
  using Values = std::variant<PoolStack<float, Op>, PoolStack<double, Op>>;

  std::variant<Values<PoolMaxAbs>, Values<PoolMin>, Values<PoolMax>, Values<PoolFromOne>,
               PoolStack<double, PoolSum>>
      values;
  std::optional<PoolStack<std::uint8_t, PoolOr>> specials;  // where there is any
  std::optional<PoolStack<std::uint32_t, PoolSum>> counts;  // of a mean
};

namespace {

template <class T, class Op>
PoolStack<T, Op> stack_of(const Grid& grid, bool any_special) {
  return PoolStack<T, Op>(grid.rows(), grid.cols(), FiniteCells<T, Op>{grid, any_special});
}

template <class Op>
Pyramid::Levels::Values<Op> values_of(const Grid& grid, bool any_special) {
  if (is_float(grid)) return stack_of<float, Op>(grid, any_special);
  return stack_of<double, Op>(grid, any_special);
}

std::shared_ptr<const Pyramid::Levels> build(const Grid& grid, Reduction reduction) {
  const bool special = has_special(grid);
  auto levels = [&]() -> Pyramid::Levels {
    switch (reduction) {
      case Reduction::min:
        return {values_of<PoolMin>(grid, special), {}, {}};
      case Reduction::max:
        return {values_of<PoolMax>(grid, special), {}, {}};
      case Reduction::mean:
        return {stack_of<double, PoolSum>(grid, special), {}, {}};
      case Reduction::from_one:
        return {values_of<PoolFromOne>(grid, special), {}, {}};
      case Reduction::max_abs:
        break;
    }
    return {values_of<PoolMaxAbs>(grid, special), {}, {}};
  }();
  if (special) levels.specials.emplace(grid.rows(), grid.cols(), SpecialFlags{grid});
  if (reduction == Reduction::mean)
    levels.counts.emplace(grid.rows(), grid.cols(), FiniteCounts{grid});
  return std::make_shared<const Pyramid::Levels>(std::move(levels));
}

// One view of a pyramid on its way to pixels.
struct View {
  const Grid& grid;
  const Pyramid::Levels& levels;
  PixelEdges row_cells, col_cells;
  int level;
  PixelEdges rows, cols;  // of blocks of that level

  bool repeats(int i) const {
    return i > 0 && row_cells.begin[i] == row_cells.begin[i - 1] &&
           row_cells.end[i] == row_cells.end[i - 1];
  }
};

void find_kinds(const View& view, int i, std::vector<CellKind>& kinds) {
  std::fill(kinds.begin(), kinds.end(), CellKind::masked);
  for (int r = view.row_cells.begin[i]; r < view.row_cells.end[i]; ++r) {
    mark_existing(view.grid.span(r), view.col_cells, kinds.data());
    if (!view.grid.has_spans()) break;
  }
}

// Rows of counts and special flags, where the pyramid has them.
class Extras {
 public:
  explicit Extras(const View& view) : counts_source_{view.grid}, flags_source_{view.grid} {
    const Pyramid::Levels& levels = view.levels;
    if (levels.counts)
      counts_.emplace(*levels.counts, counts_source_, view.level, view.rows, view.cols);
    if (levels.specials)
      flags_.emplace(*levels.specials, flags_source_, view.level, view.rows, view.cols);
    count_row_.resize(view.cols.begin.size());
    flag_row_.resize(view.cols.begin.size());
  }

  void apply(int i, std::vector<double>& values, std::vector<CellKind>& kinds) {
    if (counts_) {
      counts_->row(i, count_row_.data());
      for (std::size_t j = 0; j < values.size(); ++j)
        if (count_row_[j] > 0) values[j] /= count_row_[j];
    }
    if (!flags_) return;
    flags_->row(i, flag_row_.data());
    for (std::size_t j = 0; j < kinds.size(); ++j)
      if (flag_row_[j] != 0 && kinds[j] == CellKind::finite) kinds[j] = kind_of_flags(flag_row_[j]);
  }

 private:
  FiniteCounts counts_source_;
  SpecialFlags flags_source_;
  std::optional<PoolStack<std::uint32_t, PoolSum>::Pixels<FiniteCounts>> counts_;
  std::optional<PoolStack<std::uint8_t, PoolOr>::Pixels<SpecialFlags>> flags_;
  std::vector<std::uint32_t> count_row_;
  std::vector<std::uint8_t> flag_row_;
};

struct Band {
  int first = 0, end = 0;  // rows of pixels
};

template <class T, class Op>
void reduce_view(const View& view, const Band& band, const PoolStack<T, Op>& stack,
                 const std::function<void(const PixelRow&)>& use) {
  const FiniteCells<T, Op> source{view.grid, view.levels.specials.has_value()};
  typename PoolStack<T, Op>::template Pixels<FiniteCells<T, Op>> pixels(stack, source, view.level,
                                                                        view.rows, view.cols);
  Extras extras(view);
  const int n = view.cols.size();
  std::vector<double> values(n);
  std::vector<CellKind> kinds(n);
  for (int i = band.first; i < band.end; ++i) {
    const bool repeats = i > band.first && view.repeats(i);
    if (!repeats) {
      find_kinds(view, i, kinds);
      pixels.row(i, values.data());
      extras.apply(i, values, kinds);
    }
    use({i, n, values.data(), kinds.data(), repeats});
  }
}

template <class... Stacks>
void reduce_view(const View& view, const Band& band, const std::variant<Stacks...>& stacks,
                 const std::function<void(const PixelRow&)>& use) {
  std::visit([&](const auto& stack) { reduce_view(view, band, stack, use); }, stacks);
}

// Fewer pixels are drawn before another thread is awake.
constexpr int kPixelsWorthAThread = 1 << 18;
constexpr int kMostThreads = 4;

int band_count(int rows, int cols) {
  const int worth = static_cast<int>(std::int64_t{rows} * cols / kPixelsWorthAThread);
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return std::clamp(std::min({worth, cores, kMostThreads}), 1, rows);
}

}  // namespace

Pyramid::Pyramid(const Grid& grid, Reduction reduction)
    : grid_(grid), reduction_(reduction), levels_(build(grid, reduction)) {}

void Pyramid::reduce_rows(const CellRect& view, int target_rows, int target_cols,
                          const std::function<void(const PixelRow&)>& use) const {
  reduce(view, target_rows, target_cols, 1, use);
}

void Pyramid::reduce_bands(const CellRect& view, int target_rows, int target_cols,
                           const std::function<void(const PixelRow&)>& use) const {
  reduce(view, target_rows, target_cols, band_count(target_rows, target_cols), use);
}

void Pyramid::reduce(const CellRect& view, int target_rows, int target_cols, int n_bands,
                     const std::function<void(const PixelRow&)>& use) const {
  if (target_rows <= 0 || target_cols <= 0 || grid_.empty()) return;
  if (!(view.height() > 0) || !(view.width() > 0)) return;
  PixelEdges rows = pixel_edges(view.top, view.bottom, target_rows, grid_.rows());
  PixelEdges cols = pixel_edges(view.left, view.right, target_cols, grid_.cols());
  const double finest = std::min(view.height() / target_rows, view.width() / target_cols);
  int level = 0;
  while (std::ldexp(1.0, level + 2) <= finest) ++level;
  const PixelEdges row_blocks = block_edges(rows, level), col_blocks = block_edges(cols, level);
  const View pixels{grid_, *levels_,   std::move(rows), std::move(cols),
                    level, row_blocks, col_blocks};
  const auto edge = [&](int band) {
    return static_cast<int>(std::int64_t{target_rows} * band / n_bands);
  };
  std::vector<std::jthread> others;
  for (int band = 1; band < n_bands; ++band)
    others.emplace_back([&, band] {
      reduce_view(pixels, Band{edge(band), edge(band + 1)}, levels_->values, use);
    });
  reduce_view(pixels, Band{0, edge(1)}, levels_->values, use);
}

PooledCells Pyramid::reduced(const CellRect& view, int target_rows, int target_cols) const {
  PooledCells cells;
  cells.rows = std::max(target_rows, 0);
  cells.cols = std::max(target_cols, 0);
  const std::size_t n = static_cast<std::size_t>(cells.rows) * cells.cols;
  cells.values.assign(n, 0);
  cells.kinds.assign(n, CellKind::masked);
  cells.pooled = n > 0 && (view.height() > cells.rows || view.width() > cells.cols);
  reduce_rows(view, target_rows, target_cols, [&](const PixelRow& row) {
    const std::size_t at = static_cast<std::size_t>(row.row) * row.cols;
    std::copy_n(row.values, row.cols, cells.values.begin() + static_cast<std::ptrdiff_t>(at));
    std::copy_n(row.kinds, row.cols, cells.kinds.begin() + static_cast<std::ptrdiff_t>(at));
  });
  return cells;
}

PooledCells Pyramid::reduced(int target_rows, int target_cols) const {
  return reduced({0, 0, double(grid_.rows()), double(grid_.cols())}, target_rows, target_cols);
}

}  // namespace sinkscope
