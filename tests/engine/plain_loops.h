// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "capture/checkpoint/model_files.h"
#include "capture/engine.h"
#include "tests/support/h5_reference.h"

namespace sinkscope::test {

// Pieces of float64 references as plain loops over rows.
using Row = std::vector<double>;
using Rows = std::vector<Row>;

inline std::size_t at(int i) { return static_cast<std::size_t>(i); }

// The folder's model with another config.json, and a capture of its oracle's prompt with
// everything.
std::unique_ptr<ModelFiles> with_config(const std::string& folder,
                                        const std::function<void(nlohmann::json&)>& change);
CaptureRequest everything_of(const std::string& folder);

// One layer of a tap of run0 as rows of `width`; a role's matrix.
Rows tap_rows(const H5Reference& file, const std::string& hook, int layer, std::size_t width);
Rows matrix(const ModelFiles& model, Role role, int layer);

Rows times(const Rows& x, const Rows& w);  // x [T][in], w [out][in] -> [T][out]
double dot(const Row& a, const Row& b);
// gain ⊙ x / sqrt(mean(x²) + eps)
Row normed(const Row& x, const std::vector<float>& gain, double eps);
// Of the `seen` first scores the n best.
std::set<int> best_of(const Row& scores, int seen, int n);
// Rotate-half, θ^(−2i/n), on n dims of x from `first` on.
void rotate_half(Row& x, std::size_t first, std::size_t n, double position, double theta);

}  // namespace sinkscope::test
