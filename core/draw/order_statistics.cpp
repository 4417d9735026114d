// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/order_statistics.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/draw/grid_rows.h"
#include "core/draw/order_keys.h"

namespace sinkscope {

namespace {

constexpr int kBins = kOrderBins;

template <class Key>
constexpr int kShift = static_cast<int>(sizeof(Key)) * 8 - 16;

// Bins of the upper 16 bits that hold the counted values: non-finite ones lie outside of them.
template <class Key>
std::pair<int, int> counted_bins(Counted counted) {
  const int half = kBins / 2;
  const int exponents = sizeof(Key) == 4 ? 0x7F80 : 0x7FF0;
  return {counted == Counted::all ? half - exponents : half, half + exponents};
}

template <class Key>
using ValueOf = std::conditional_t<sizeof(Key) == 4, float, double>;

// The key of a value; 0 for a value that is not counted, whose bin holds no finite value.
template <class Key, Counted counted, class T>
Key key_of(T x) {
  auto value = static_cast<ValueOf<Key>>(x);
  if constexpr (counted == Counted::all) return order_key(value);
  if constexpr (counted == Counted::nonzero_magnitude) value = std::abs(value);
  return value > 0 ? order_key(value) : 0;
}

template <class Key, Counted counted>
std::vector<std::int64_t> first_pass(std::span<const Grid> grids) {
  std::vector<std::int64_t> bins(kBins);
  // Two tables, so that equal neighbors do not wait for each other's increment.
  std::vector<std::uint32_t> even(kBins), odd(kBins);
  for (const Grid& grid : grids) {
    std::fill(even.begin(), even.end(), 0);
    std::fill(odd.begin(), odd.end(), 0);
    for_each_row(grid, [&](int, int, const auto* x, int n) {
      int i = 0;
      for (; i + 1 < n; i += 2) {
        ++even[key_of<Key, counted>(x[i]) >> kShift<Key>];
        ++odd[key_of<Key, counted>(x[i + 1]) >> kShift<Key>];
      }
      if (i < n) ++even[key_of<Key, counted>(x[i]) >> kShift<Key>];
    });
    const auto [begin, end] = counted_bins<Key>(counted);
    for (int bin = begin; bin < end; ++bin) bins[bin] += std::int64_t{even[bin]} + odd[bin];
  }
  return bins;
}

template <class Key, Counted counted>
double select(std::span<const Grid> grids, std::vector<std::int64_t> bins, std::int64_t rank) {
  Key prefix = 0;
  for (int shift = kShift<Key>;; shift -= 16) {
    int bin = 0;
    for (; bin < kBins - 1 && rank > bins[bin]; ++bin) rank -= bins[bin];
    prefix |= static_cast<Key>(bin) << shift;
    if (shift == 0) return order_value(prefix);
    std::fill(bins.begin(), bins.end(), 0);
    for (const Grid& grid : grids)
      for_each_row(grid, [&](int, int, const auto* x, int n) {
        for (int i = 0; i < n; ++i) {
          const Key key = key_of<Key, counted>(x[i]);
          if (key >> shift == prefix >> shift) ++bins[(key >> (shift - 16)) & (kBins - 1)];
        }
      });
  }
}

// Calls f with the key type and the choice of values as types.
template <class F>
auto with_types(bool is_float, Counted counted, F&& f) {
  const auto with_key = [&](auto key) {
    using Key = decltype(key);
    switch (counted) {
      case Counted::positive:
        return f.template operator()<Key, Counted::positive>();
      case Counted::nonzero_magnitude:
        return f.template operator()<Key, Counted::nonzero_magnitude>();
      case Counted::all:
        break;
    }
    return f.template operator()<Key, Counted::all>();
  };
  return is_float ? with_key(std::uint32_t{}) : with_key(std::uint64_t{});
}

}  // namespace

bool are_floats(std::span<const Grid> grids) {
  return std::all_of(grids.begin(), grids.end(), [](const Grid& grid) {
    return grid.visit([](const auto* x) { return sizeof(*x) == sizeof(float); });
  });
}

std::vector<std::int64_t> order_bins(std::span<const Grid> grids) {
  return first_pass<std::uint32_t, Counted::all>(grids);
}

OrderStatistics::OrderStatistics(std::span<const Grid> grids, Counted counted)
    : grids_(grids), counted_(counted), is_float_(are_floats(grids)) {
  bins_ = with_types(is_float_, counted, [&]<class Key, Counted kCounted>() {
    return first_pass<Key, kCounted>(grids);
  });
  for (const std::int64_t n : bins_) count_ += n;
}

double OrderStatistics::quantile(double p) const {
  const auto rank = std::clamp<std::int64_t>(
      static_cast<std::int64_t>(std::ceil(p * static_cast<double>(count_))), 1, count_);
  return with_types(is_float_, counted_, [&]<class Key, Counted kCounted>() {
    return select<Key, kCounted>(grids_, bins_, rank);
  });
}

}  // namespace sinkscope
