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

// Runs of neighbors are read in one piece. Runs too short to be worth a call of their own (rows
// that alternate) are picked out of a stretch that is read whole.
void read_row_lines(const Checkpoint& checkpoint, int tensor, const TensorView& view,
                    std::int64_t begin, std::int64_t end, float* out) {
  constexpr std::int64_t kShortRun = 8, kStretch = 256;
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
  std::vector<float> stretch;
  for (std::int64_t line = begin; line < end; line += kStretch) {
    const std::int64_t n = std::min(kStretch, end - line);
    const std::int64_t first = view.stored(line), last = view.stored(line + n - 1);
    stretch.resize(static_cast<std::size_t>((last - first + 1) * width));
    checkpoint.read_rows(tensor, first, last + 1, stretch.data());
    for (std::int64_t i = 0; i < n; ++i)
      std::copy_n(stretch.data() + (view.stored(line + i) - first) * width, width,
                  out + (line + i - begin) * width);
  }
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

void read_transposed(const Checkpoint& checkpoint, int tensor, const TensorView& view,
                     std::int64_t begin, std::int64_t end, float* out) {
  const std::int64_t width = info_of(checkpoint, tensor).row_size();
  const std::int64_t per_matrix = view.rows / view.matrices;
  std::vector<float> matrix(static_cast<std::size_t>(view.cols * width));
  for (std::int64_t line = begin; line < end;) {
    const std::int64_t which = line / per_matrix;
    const std::int64_t stop = std::min(end, (which + 1) * per_matrix);
    checkpoint.read_rows(tensor, which * view.cols, (which + 1) * view.cols, matrix.data());
    for (; line < stop; ++line) {
      const float* column = matrix.data() + view.stored(line - which * per_matrix);
      for (std::int64_t in = 0; in < view.cols; ++in) *out++ = column[in * width];
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
    case Lines::transposed:
      read_transposed(checkpoint, tensor, view, begin, end, out);
      return;
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

}  // namespace sinkscope
