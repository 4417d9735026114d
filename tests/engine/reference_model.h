// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <vector>

#include "capture/checkpoint/model_files.h"
#include "capture/record/site.h"

namespace sinkscope::test {

using Row = std::vector<double>;
using Rows = std::vector<Row>;  // [T][n]

// Where the reference lets itself be changed; whatever is not set changes nothing.
struct ReferenceHooks {
  std::function<void(Site site, int layer, Rows& x)> residual;
  // The whole norm: rows in, rows out.
  std::function<Rows(Role role, int layer, const Rows& x, const Row& gain, double eps)> norm;
  // Scores of query i over keys 0 … i, −∞ outside its window → weights; replaces softmax.
  std::function<Row(int layer, int head, int i, const Row& scores)> weights;
  std::function<void(int layer, int head, Rows& v)> values;  // [T][d], one query head's
  std::function<void(int layer, int head, const Rows& n1, Rows& z)> z;
  std::function<double(double gate)> activation;
};

Row reference_softmax(const Row& scores);
Row reference_rms_norm(const Row& x, const Row& gain, double eps);

// A Llama-family model of plain rotary positions (no scaling), with or without biases, norms of q
// and k (of each head, or of all together), norms behind the halves, caps and a window, in double
// throughout, written as the equations stand. Returns the loss of the next token, [T−1].
Row reference_loss(const ModelFiles& model, const std::vector<int>& ids,
                   const ReferenceHooks& hooks = {});

}  // namespace sinkscope::test
