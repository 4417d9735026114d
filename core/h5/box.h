// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sinkscope::h5 {

// A shape, a position or an extent: one entry a dimension. None = a scalar.
using Dims = std::vector<std::int64_t>;

// Product of the dimensions; 1 for a scalar. Error{corrupt} when a dimension is negative or the
// product does not fit (2^60).
std::int64_t n_elements(const Dims& dims, const std::string& where);

// Error{invalid_argument} unless the box start + count lies inside the shape.
void check_box(const Dims& dims, const Dims& start, const Dims& count, const std::string& where);

}  // namespace sinkscope::h5
