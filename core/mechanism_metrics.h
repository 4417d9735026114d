// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <span>
#include <vector>

// Numbers of mechanisms that live in a model: gates and attention over depth.
namespace sinkscope {

// Pearson correlation over the rows of a norm's output |y| with the gate that it goes through, for
// each of `width` dimensions; `gated` = y ⊙ gate, both [rows, width]. Positive: the gate opens for
// large values. NaN where one of the two does not vary, or for fewer than two rows. Rows whose gate
// is 0, or where something is not finite, are left out.
std::vector<double> gate_correlation(const float* gated, const float* gate, int rows, int width);

// Weights of one mix over depth, α [tokens, sources] with rows that sum to 1; the first source is
// the embedding, the last the newest sum.
struct DepthUse {
  std::vector<double> mean;          // [sources] mean over the tokens
  double top1 = 0;                   // mean of max α
  double effective_branches = 0;     // mean of exp(H(α)), 1 to the number of sources
  double embedding = 0, newest = 0;  // mean α of the first and of the last source
  double concentrated = 0;           // share of the tokens with max α > 0.9
};
// Tokens with a weight that is not finite are left out; NaN where none is left.
DepthUse depth_use(std::span<const float> weights, int n_tokens, int n_sources);

}  // namespace sinkscope
