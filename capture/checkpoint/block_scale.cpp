// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/block_scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "capture/checkpoint/printable.h"

namespace sinkscope {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// A block length b with ceil(size / b) = n: released checkpoints use powers of two, 128 first.
std::optional<std::int64_t> infer_block(std::int64_t size, std::int64_t n) {
  if (n == 1) return size;
  if (n == size) return 1;
  if (ceil_div(size, 128) == n) return 128;
  for (std::int64_t b = 1; b < size; b *= 2) {
    if (ceil_div(size, b) == n) return b;
  }
  if (size % n == 0) return size / n;
  return std::nullopt;
}

}  // namespace

std::variant<BlockScale, std::string> fit_scale(const TensorInfo& weight, const TensorInfo& scale,
                                                const std::vector<std::int64_t>& block_hint) {
  const auto refuse = [&](const std::string& why) {
    return fmt::format("the scale {} has shape {}, which does not fit {}{}", printable(scale.name),
                       shape_text(scale.shape), shape_text(weight.shape), why);
  };
  const std::int64_t n_rows = weight.n_rows(), n_cols = weight.row_size();
  if (n_rows < 1 || n_cols < 1) return refuse("");
  BlockScale fit;
  if (scale.n_elements() == 1) {
    fit.matrix_rows = fit.block_rows = n_rows;
    fit.block_cols = n_cols;
    return fit;
  }
  const std::size_t rank = weight.shape.size();
  if (scale.shape.size() == 1 && scale.shape[0] == n_rows) {  // a factor a row
    fit.matrix_rows = fit.scale_rows = n_rows;
    fit.block_cols = n_cols;
    return fit;
  }
  if (rank < 2 || scale.shape.size() != rank ||
      !std::equal(weight.shape.begin(), weight.shape.end() - 2, scale.shape.begin())) {
    return refuse("");
  }
  fit.matrix_rows = weight.shape[rank - 2];
  fit.scale_rows = scale.shape[rank - 2];
  fit.scale_cols = scale.shape[rank - 1];
  const bool per_row = fit.scale_cols == 1 && fit.scale_rows == fit.matrix_rows;
  if (block_hint.size() == 2 && !per_row) {
    fit.block_rows = block_hint[0];
    fit.block_cols = block_hint[1];
    constexpr std::int64_t kLargest = std::int64_t{1} << 30;
    if (fit.block_rows < 1 || fit.block_cols < 1 || fit.block_rows > kLargest ||
        fit.block_cols > kLargest || ceil_div(fit.matrix_rows, fit.block_rows) != fit.scale_rows ||
        ceil_div(n_cols, fit.block_cols) != fit.scale_cols) {
      return refuse(fmt::format(" in blocks of {} (weight_block_size)", shape_text(block_hint)));
    }
    return fit;
  }
  const auto rows =
      fit.scale_rows < 1 ? std::nullopt : infer_block(fit.matrix_rows, fit.scale_rows);
  const auto cols = fit.scale_cols < 1 ? std::nullopt : infer_block(n_cols, fit.scale_cols);
  if (!rows || !cols) return refuse(" in blocks of any size");
  fit.block_rows = *rows;
  fit.block_cols = *cols;
  fit.inferred = !per_row;
  return fit;
}

void apply_scale(const BlockScale& scale, const std::vector<float>& factors, std::int64_t begin,
                 std::int64_t n_rows, std::int64_t row_size, float* rows) {
  const std::int64_t first = scale.first_factor(begin);
  for (std::int64_t r = 0; r < n_rows; ++r) {
    const float* row_factors = factors.data() + (scale.first_factor(begin + r) - first);
    float* row = rows + r * row_size;
    for (std::int64_t block = 0; block < scale.scale_cols; ++block) {
      const std::int64_t col_begin = block * scale.block_cols;
      const std::int64_t col_end = std::min(row_size, col_begin + scale.block_cols);
      const float factor = row_factors[block];
      for (std::int64_t c = col_begin; c < col_end; ++c) row[c] *= factor;
    }
  }
}

}  // namespace sinkscope
