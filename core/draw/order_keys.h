// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "core/draw/grid.h"

namespace sinkscope {

inline constexpr int kOrderBins = 1 << 16;

// Unsigned numbers in the order of the values; −0 comes right before +0. Without a branch, which
// random signs would make slow: negative numbers are inverted, the others get the upper bit.
inline std::uint32_t order_key(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return bits ^ (-(bits >> 31) | 0x80000000U);
}
inline std::uint64_t order_key(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  return bits ^ (-(bits >> 63) | std::uint64_t{1} << 63);
}
inline double order_value(std::uint32_t key) {
  return std::bit_cast<float>(key & 0x80000000U ? key ^ 0x80000000U : ~key);
}
inline double order_value(std::uint64_t key) {
  return std::bit_cast<double>(key >> 63 ? key ^ (std::uint64_t{1} << 63) : ~key);
}

// Finite cells of float grids by the upper half of their key. [kOrderBins]
std::vector<std::int64_t> order_bins(std::span<const Grid> grids);
bool are_floats(std::span<const Grid> grids);

}  // namespace sinkscope
