// SPDX-License-Identifier: GPL-3.0-or-later
// What a large map costs before it is on the screen, and a frame after that.
#include <benchmark/benchmark.h>

#include <random>

#include "core/draw/pyramid.h"
#include "core/draw/raster.h"

namespace {

using namespace sinkscope;

constexpr int kSize = 4096;

const Grid& large_map() {
  static const Grid grid = [] {
    std::vector<float> values(std::size_t{kSize} * kSize);
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (float& value : values) value = normal(random);
    return Grid(kSize, kSize, std::move(values));
  }();
  return grid;
}

const Grid& causal_map() {
  static const Grid grid = large_map().with_spans(causal_spans(kSize, kSize));
  return grid;
}

void BM_pyramid(benchmark::State& state) {
  const Grid& grid = state.range(0) ? causal_map() : large_map();
  for (auto _ : state) benchmark::DoNotOptimize(Pyramid(grid));
}
BENCHMARK(BM_pyramid)->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

void BM_percentile_range(benchmark::State& state) {
  const Grid& grid = large_map();
  for (auto _ : state) benchmark::DoNotOptimize(find_range(grid, {}));
}
BENCHMARK(BM_percentile_range)->Unit(benchmark::kMillisecond);

void BM_summary(benchmark::State& state) {
  const ValueRange range{-2, 2};
  for (auto _ : state) benchmark::DoNotOptimize(summarize({&large_map(), 1}, range));
}
BENCHMARK(BM_summary)->Unit(benchmark::kMillisecond);

// A frame of state.range(0) visible cells a side on 1000 × 1000 pixels.
void BM_frame_pixels(benchmark::State& state) {
  static const Pyramid pyramid(causal_map());
  static const Colormap map = colormap("viridis");
  const auto extent = static_cast<double>(state.range(0));
  double top = 0;
  for (auto _ : state) {
    top = top > 300 ? 0 : top + 1;
    const double from = kSize - extent - top;
    benchmark::DoNotOptimize(
        color_cells(pyramid.reduced({from, 0, from + extent, extent}, 1000, 1000), {-2, 2}, map));
  }
}
BENCHMARK(BM_frame_pixels)
    ->Arg(100)
    ->Arg(1000)
    ->Arg(1900)
    ->Arg(3700)
    ->Unit(benchmark::kMillisecond);

}  // namespace
