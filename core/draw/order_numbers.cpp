// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/draw/order_numbers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "core/draw/grid_rows.h"
#include "core/draw/order_keys.h"
#include "core/draw/order_statistics.h"

namespace sinkscope {

namespace {

constexpr int kHalf = kOrderBins / 2;

// A rank (from 1) within one bin.
struct BinRank {
  int bin = 0;
  std::int64_t rank = 1;
};

std::int64_t rank_of(double p, std::int64_t n) {
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(std::ceil(p * static_cast<double>(n))),
                                  1, n);
}

template <class Count>
BinRank find_bin(int n_bins, std::int64_t rank, Count count) {
  int bin = 0;
  for (; bin < n_bins - 1 && rank > count(bin); ++bin) rank -= count(bin);
  return {bin, rank};
}

using LowBits = std::vector<std::uint32_t>;  // how often each lower half occurs in a bin

// One pass for all wanted bins.
std::map<int, LowBits> low_bits_of(std::span<const Grid> grids, const std::vector<int>& bins) {
  std::vector<std::uint8_t> slot(kOrderBins, 0);
  std::vector<LowBits> counts;
  for (const int bin : bins) {
    if (slot[bin] != 0) continue;
    counts.emplace_back(kOrderBins, 0);
    slot[bin] = static_cast<std::uint8_t>(counts.size());
  }
  for (const Grid& grid : grids)
    for_each_row(grid, [&](int, int, const auto* x, int n) {
      for (int i = 0; i < n; ++i) {
        const std::uint32_t key = order_key(static_cast<float>(x[i]));
        if (const int s = slot[key >> 16]; s != 0) ++counts[s - 1][key & 0xFFFF];
      }
    });
  std::map<int, LowBits> found;
  for (const int bin : bins) found[bin] = counts[slot[bin] - 1];
  return found;
}

template <class Count>
std::uint32_t find_low(std::int64_t rank, Count count) {
  return static_cast<std::uint32_t>(find_bin(kOrderBins, rank, count).bin);
}

OrderNumbers numbers_of_floats(std::span<const Grid> grids, const ZeroCounts& zeros) {
  OrderNumbers out;
  out.bins = order_bins(grids);
  std::int64_t n = 0;
  for (const std::int64_t count : out.bins) n += count;
  if (n == 0) return out;
  // Magnitudes: bin k of the positive half and its mirror among the negative numbers.
  const auto magnitudes = [&](int k) {
    return out.bins[kHalf + k] + out.bins[kHalf - 1 - k] - (k == 0 ? zeros.zeros : 0);
  };
  const std::int64_t n_below = n - zeros.positive, n_nonzero = n - zeros.zeros;
  const auto in_all = [&](std::int64_t rank) {
    return find_bin(kOrderBins, rank, [&](int bin) { return out.bins[bin]; });
  };
  std::array<BinRank, 4> places{in_all(rank_of(0.01, n)), in_all(rank_of(0.99, n))};
  if (zeros.positive > 0) {
    places[2] = in_all(n_below + rank_of(0.01, zeros.positive));
    places[3] = in_all(n_below + rank_of(0.99, zeros.positive));
  }
  const BinRank middle =
      n_nonzero > 0 ? find_bin(kHalf, rank_of(0.5, n_nonzero), magnitudes) : BinRank();
  std::vector<int> wanted{kHalf + middle.bin, kHalf - 1 - middle.bin};
  for (const BinRank& place : places) wanted.push_back(place.bin);
  const std::map<int, LowBits> low = low_bits_of(grids, wanted);
  const auto value = [&](const BinRank& place) {
    const LowBits& counts = low.at(place.bin);
    const std::uint32_t bits = find_low(place.rank, [&](int i) { return std::int64_t{counts[i]}; });
    return order_value(static_cast<std::uint32_t>(place.bin) << 16 | bits);
  };
  out.low = value(places[0]);
  out.high = value(places[1]);
  if (zeros.positive > 0) {
    out.low_positive = value(places[2]);
    out.high_positive = value(places[3]);
  }
  if (n_nonzero == 0) return out;
  const LowBits& up = low.at(kHalf + middle.bin);
  const LowBits& down = low.at(kHalf - 1 - middle.bin);
  const std::uint32_t bits = find_low(middle.rank, [&](int i) {
    const bool is_zero = middle.bin == 0 && i == 0;
    return is_zero ? 0 : std::int64_t{up[i]} + down[kOrderBins - 1 - i];
  });
  out.median_magnitude = order_value(static_cast<std::uint32_t>(kHalf + middle.bin) << 16 | bits);
  return out;
}

}  // namespace

OrderNumbers order_numbers(std::span<const Grid> grids, const ZeroCounts& zeros) {
  if (are_floats(grids)) return numbers_of_floats(grids, zeros);
  OrderNumbers out;
  const OrderStatistics all(grids, Counted::all), positive(grids, Counted::positive),
      nonzero(grids, Counted::nonzero_magnitude);
  if (all.count() > 0) {
    out.low = all.quantile(0.01);
    out.high = all.quantile(0.99);
  }
  if (positive.count() > 0) {
    out.low_positive = positive.quantile(0.01);
    out.high_positive = positive.quantile(0.99);
  }
  if (nonzero.count() > 0) out.median_magnitude = nonzero.quantile(0.5);
  return out;
}

}  // namespace sinkscope
