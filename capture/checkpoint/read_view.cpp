// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/read_view.h"

#include <algorithm>
#include <vector>

namespace sinkscope {
namespace {

using Lines = TensorView::Lines;

const TensorInfo& info_of(const Checkpoint& checkpoint, int tensor) {
  return checkpoint.tensors()[static_cast<std::size_t>(tensor)];
}

// Runs of rows shorter than this are not worth a call of their own: they are picked out of
// kStretch lines that are read whole.
constexpr std::int64_t kShortRun = 8, kStretch = 256;

// Lines [done, done + n) of every view, counted from its first, out of one stretch of stored rows.
void read_stretch(const Checkpoint& checkpoint, const std::vector<ViewStretch>& views,
                  std::int64_t done, std::int64_t n, std::vector<float>& stretch) {
  const int tensor = views.front().ref->tensor;
  const std::int64_t width = info_of(checkpoint, tensor).row_size();
  const auto stored = [](const ViewStretch& v, std::int64_t line) {
    return v.ref->view.stored(v.begin + line);
  };
  std::int64_t first = stored(views.front(), done), last = first;
  for (const ViewStretch& v : views) {
    first = std::min(first, stored(v, done));
    last = std::max(last, stored(v, done + n - 1));
  }
  stretch.resize(static_cast<std::size_t>((last - first + 1) * width));
  checkpoint.read_rows(tensor, first, last + 1, stretch.data());
  for (const ViewStretch& v : views)
    for (std::int64_t line = done; line < done + n; ++line)
      std::copy_n(stretch.data() + (stored(v, line) - first) * width, width, v.out + line * width);
}

void read_alternating(const Checkpoint& checkpoint, const std::vector<ViewStretch>& views) {
  std::vector<float> stretch;
  const std::int64_t n = views.front().end - views.front().begin;
  for (std::int64_t done = 0; done < n; done += kStretch)
    read_stretch(checkpoint, views, done, std::min(kStretch, n - done), stretch);
}

// Runs of neighbors are read in one piece.
void read_row_lines(const Checkpoint& checkpoint, int tensor, const TensorView& view,
                    std::int64_t begin, std::int64_t end, float* out) {
  const std::int64_t width = info_of(checkpoint, tensor).row_size();
  if (view.block >= kShortRun) {
    for (std::int64_t line = begin; line < end;) {
      const std::int64_t n = std::min(end - line, view.block - line % view.block);
      const std::int64_t row = view.stored(line);
      checkpoint.read_rows(tensor, row, row + n, out + (line - begin) * width);
      line += n;
    }
    return;
  }
  TensorRef ref;
  ref.tensor = tensor;
  ref.view = view;
  read_alternating(checkpoint, {{&ref, begin, end, out}});
}

void read_column_lines(const Checkpoint& checkpoint, int tensor, const TensorView& view,
                       std::int64_t begin, std::int64_t end, float* out) {
  const std::int64_t width = info_of(checkpoint, tensor).row_size();
  std::vector<float> row(static_cast<std::size_t>(width));
  for (std::int64_t r = begin; r < end; ++r) {
    checkpoint.read_rows(tensor, r, r + 1, row.data());
    for (std::int64_t i = 0; i < view.cols; ++i)
      *out++ = row[static_cast<std::size_t>(view.stored(i))];
  }
}

// Stored columns as rows: every matrix that some line lies in is read once for all views.
void read_transposed(const Checkpoint& checkpoint, const std::vector<ViewStretch>& views) {
  const TensorRef& ref = *views.front().ref;
  const std::int64_t width = info_of(checkpoint, ref.tensor).row_size(), rows = ref.view.cols;
  std::vector<float> matrix(static_cast<std::size_t>(rows * width));
  for (std::int64_t which = 0; which < ref.view.matrices; ++which) {
    bool is_read = false;
    for (const ViewStretch& v : views) {
      const std::int64_t per_matrix = v.ref->view.rows / v.ref->view.matrices;
      const std::int64_t first = std::max(v.begin, which * per_matrix);
      const std::int64_t end = std::min(v.end, (which + 1) * per_matrix);
      if (first >= end) continue;
      if (!is_read)
        checkpoint.read_rows(ref.tensor, which * rows, (which + 1) * rows, matrix.data());
      is_read = true;
      float* out = v.out + (first - v.begin) * rows;
      for (std::int64_t line = first; line < end; ++line) {
        const float* column = matrix.data() + v.ref->view.stored(line - which * per_matrix);
        for (std::int64_t in = 0; in < rows; ++in) *out++ = column[in * width];
      }
    }
  }
}

void read_part(const Checkpoint& checkpoint, int tensor, const TensorView& view, std::int64_t begin,
               std::int64_t end, float* out) {
  switch (view.lines) {
    case Lines::all: {
      // Another shape of the same values: a row of the role is one stored row or several.
      const std::int64_t width = info_of(checkpoint, tensor).row_size();
      const std::int64_t each = view.cols > 0 ? view.cols / std::max<std::int64_t>(width, 1) : 1;
      checkpoint.read_rows(tensor, begin * each, end * each, out);
      return;
    }
    case Lines::rows:
      read_row_lines(checkpoint, tensor, view, begin, end, out);
      return;
    case Lines::columns:
      read_column_lines(checkpoint, tensor, view, begin, end, out);
      return;
    case Lines::transposed: {
      TensorRef ref;
      ref.tensor = tensor;
      ref.view = view;
      read_transposed(checkpoint, {{&ref, begin, end, out}});
      return;
    }
  }
}

}  // namespace

std::int64_t view_rows(const TensorRef& ref, const TensorInfo& tensor) {
  const std::int64_t own = ref.view.rows > 0 ? ref.view.rows : tensor.n_rows();
  return own * (1 + static_cast<std::int64_t>(ref.more.size()));
}

std::int64_t view_cols(const TensorRef& ref, const TensorInfo& tensor) {
  return ref.view.cols > 0 ? ref.view.cols : tensor.row_size();
}

void read_view(const Checkpoint& checkpoint, const TensorRef& ref, std::int64_t begin,
               std::int64_t end, float* out) {
  if (ref.more.empty()) {
    read_part(checkpoint, ref.tensor, ref.view, begin, end, out);
    return;
  }
  const TensorInfo& first = info_of(checkpoint, ref.tensor);
  const std::int64_t each = ref.view.rows > 0 ? ref.view.rows : first.n_rows();
  const std::int64_t width = view_cols(ref, first);
  for (std::int64_t row = begin; row < end;) {
    const std::int64_t which = row / each, stop = std::min(end, (which + 1) * each);
    const int tensor = which == 0 ? ref.tensor : ref.more[static_cast<std::size_t>(which - 1)];
    read_part(checkpoint, tensor, ref.view, row - which * each, stop - which * each,
              out + (row - begin) * width);
    row = stop;
  }
}

bool lie_mixed(const std::vector<ViewStretch>& stretches) {
  if (stretches.size() < 2) return false;
  const TensorRef& first = *stretches.front().ref;
  const std::int64_t n = stretches.front().end - stretches.front().begin;
  const bool is_transposed = first.view.lines == Lines::transposed;
  if (!is_transposed && (first.view.lines != Lines::rows || first.view.block >= kShortRun))
    return false;
  return std::all_of(stretches.begin(), stretches.end(), [&](const ViewStretch& s) {
    const TensorView& view = s.ref->view;
    return s.ref->tensor == first.tensor && s.ref->more.empty() &&
           s.ref->order == RowOrder::as_stored && view.lines == first.view.lines &&
           (is_transposed ? view.cols == first.view.cols && view.matrices == first.view.matrices
                          : view.block < kShortRun && s.end - s.begin == n);
  });
}

void read_mixed(const Checkpoint& checkpoint, const std::vector<ViewStretch>& stretches) {
  if (stretches.front().ref->view.lines == Lines::transposed)
    read_transposed(checkpoint, stretches);
  else
    read_alternating(checkpoint, stretches);
}

}  // namespace sinkscope
