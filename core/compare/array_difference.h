// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/compare/array_axes.h"

namespace sinkscope {

// How the values of one site differ between two runs, A and B: of one block of one array, or of an
// array that has no blocks. Over the elements that both have and that are finite in both.
struct SiteDifference {
  std::string site;     // "blocks.3.hook_resid_post", "blocks.3 attention/lse", "logits/loss"
  std::string dataset;  // "residual/stream"
  int layer = -1;       // block index; −1: none, or after the last one
  std::int64_t n_compared = 0;
  std::int64_t n_unequal = 0;     // values that differ at all
  std::int64_t n_non_finite = 0;  // NaN or infinite in one only, or infinite with opposite signs
  // The largest |B − A|, where it is, and the values there.
  double largest = 0, value_a = 0, value_b = 0;
  std::vector<std::pair<std::string, int>> place;  // {"token", 5}, {"dim", 507}
  // The largest |B − A| / max(1, |A|, |B|): absolute for probabilities, relative for what is large.
  double scaled = 0;
  double sum_squares = 0;    // Σ (B − A)²
  double low = 0, high = 0;  // the range that both sides share; NaN without a finite value
  bool is_whole = true;      // neither side has more of this site than was compared
  double rms() const;        // √(Σ (B − A)² / n); 0 for none
};

// One dataset over the axes that both have (common_axes; without any there is nothing to compare),
// read a tile of at most `tile_elements` at a time from each side.
// Throws Error: corrupt.
std::vector<SiteDifference> array_differences(const ComparedRun& a, const ComparedRun& b,
                                              const std::string& path,
                                              const std::vector<CommonAxis>& axes,
                                              std::int64_t tile_elements);

}  // namespace sinkscope
