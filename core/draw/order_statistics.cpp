// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/order_statistics.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/draw/grid_rows.h"

namespace sinkscope {

namespace {

constexpr int kBins = 1 << 16;

// Unsigned numbers in the order of the values; −0 comes right before +0.
std::uint32_t ordered(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
std::uint64_t ordered(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  return bits >> 63 ? ~bits : bits | (std::uint64_t{1} << 63);
}
double value_of(std::uint32_t key) {
  return std::bit_cast<float>(key & 0x80000000u ? key ^ 0x80000000u : ~key);
}
double value_of(std::uint64_t key) {
  return std::bit_cast<double>(key >> 63 ? key ^ (std::uint64_t{1} << 63) : ~key);
}

template <class Key>
constexpr int kShift = static_cast<int>(sizeof(Key)) * 8 - 16;

// Bins of the upper 16 bits that hold the counted values: non-finite ones lie outside of them.
template <class Key>
std::pair<int, int> counted_bins(Counted counted) {
  const int half = kBins / 2;
  const int exponents = sizeof(Key) == 4 ? 0x7F80 : 0x7FF0;
  return {counted == Counted::all ? half - exponents : half, half + exponents};
}

// The key of a value as the wider of the two types asks for.
template <class Key, class T>
Key key_of(T x, Counted counted) {
  using Value = std::conditional_t<sizeof(Key) == 4, float, double>;
  const auto value = static_cast<Value>(x);
  return ordered(counted == Counted::nonzero_magnitude ? std::abs(value) : value);
}

template <class Key>
std::vector<std::int64_t> first_pass(std::span<const Grid> grids, Counted counted) {
  // Two tables, so that equal neighbors do not wait for each other's increment.
  std::vector<std::int64_t> even(kBins), odd(kBins);
  const Key zero = ordered(std::conditional_t<sizeof(Key) == 4, float, double>(0));
  std::int64_t zeros = 0;
  for (const Grid& grid : grids)
    for_each_row(grid, [&](int, int, const auto* x, int n) {
      for (int i = 0; i < n; ++i) {
        const Key key = key_of<Key>(x[i], counted);
        zeros += key == zero;
        ++(i % 2 ? odd : even)[key >> kShift<Key>];
      }
    });
  const auto [begin, end] = counted_bins<Key>(counted);
  for (int bin = 0; bin < kBins; ++bin)
    even[bin] = bin >= begin && bin < end ? even[bin] + odd[bin] : 0;
  if (counted != Counted::all) even[zero >> kShift<Key>] -= zeros;
  return even;
}

template <class Key>
double select(std::span<const Grid> grids, Counted counted, std::vector<std::int64_t> bins,
              std::int64_t rank) {
  const Key zero = ordered(std::conditional_t<sizeof(Key) == 4, float, double>(0));
  Key prefix = 0;
  for (int shift = kShift<Key>;; shift -= 16) {
    int bin = 0;
    for (; bin < kBins - 1 && rank > bins[bin]; ++bin) rank -= bins[bin];
    prefix |= static_cast<Key>(bin) << shift;
    if (shift == 0) return value_of(prefix);
    std::fill(bins.begin(), bins.end(), 0);
    for (const Grid& grid : grids)
      for_each_row(grid, [&](int, int, const auto* x, int n) {
        for (int i = 0; i < n; ++i) {
          const Key key = key_of<Key>(x[i], counted);
          if (key >> shift == prefix >> shift && (counted == Counted::all || key != zero))
            ++bins[(key >> (shift - 16)) & (kBins - 1)];
        }
      });
  }
}

bool all_float(std::span<const Grid> grids) {
  return std::all_of(grids.begin(), grids.end(), [](const Grid& grid) {
    return grid.visit([](const auto* x) { return sizeof(*x) == sizeof(float); });
  });
}

}  // namespace

OrderStatistics::OrderStatistics(std::span<const Grid> grids, Counted counted)
    : grids_(grids), counted_(counted), is_float_(all_float(grids)) {
  bins_ = is_float_ ? first_pass<std::uint32_t>(grids, counted)
                    : first_pass<std::uint64_t>(grids, counted);
  for (const std::int64_t n : bins_) count_ += n;
}

double OrderStatistics::quantile(double p) const {
  const auto rank = std::clamp<std::int64_t>(
      static_cast<std::int64_t>(std::ceil(p * static_cast<double>(count_))), 1, count_);
  return is_float_ ? select<std::uint32_t>(grids_, counted_, bins_, rank)
                   : select<std::uint64_t>(grids_, counted_, bins_, rank);
}

}  // namespace sinkscope
