// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "capture/checkpoint/checkpoint.h"

namespace sinkscope {

// What config.json says about quantized weights (`quantization_config`).
struct QuantizationHint {
  std::string method;               // "fp8", "compressed-tensors", …; empty = not quantized
  std::vector<std::int64_t> block;  // weight_block_size, [rows, cols]; empty = not said
};

// How the factors of a quantized matrix lie over it: W[r, c] = code[r, c] * scale[flat(r), c /
// cols]. Covers one factor a tensor, a row, a block (128 x 128 in DeepSeek-V3, smaller at the
// edges) and the same per expert of a stacked tensor [E, out, in].
struct BlockScale {
  std::int64_t matrix_rows = 1;  // weight rows of one matrix of the stack
  std::int64_t block_rows = 1, block_cols = 1;
  std::int64_t scale_rows = 1, scale_cols = 1;  // factors of one matrix
  bool inferred = false;  // the block size is not in the config and had to be guessed

  // Index of the first of the scale_cols factors that weight row `row` takes.
  std::int64_t first_factor(std::int64_t row) const {
    return (row / matrix_rows * scale_rows + row % matrix_rows / block_rows) * scale_cols;
  }
};

// Fits the shape of `scale` to the shape of `weight`; a sentence why not otherwise.
std::variant<BlockScale, std::string> fit_scale(const TensorInfo& weight, const TensorInfo& scale,
                                                const std::vector<std::int64_t>& block_hint);

// Multiplies rows [begin, begin + n_rows) of a matrix with rows of `row_size` by their factors.
// `factors` begins with first_factor(begin).
void apply_scale(const BlockScale& scale, const std::vector<float>& factors, std::int64_t begin,
                 std::int64_t n_rows, std::int64_t row_size, float* rows);

}  // namespace sinkscope
