// SPDX-License-Identifier: GPL-3.0-or-later
// What a large map costs before it is on the screen, and a frame after that.
#include <benchmark/benchmark.h>

#include <QApplication>
#include <QImage>
#include <random>

#include "core/draw/pyramid.h"
#include "core/draw/range_finder.h"
#include "core/draw/raster.h"
#include "views/heatmap/heatmap.h"
#include "views/widgets/thumbnail_grid.h"

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

// All that any range of a map depends on; afterwards a range is free and its counts are one pass.
void BM_range_finder(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(RangeFinder({large_map()}));
}
BENCHMARK(BM_range_finder)->Unit(benchmark::kMillisecond);

void BM_next_range(benchmark::State& state) {
  const RangeFinder finder({large_map()});
  RangeRequest request;
  int step = 0;
  for (auto _ : state) {
    request.mode = ++step % 2 == 0 ? RangeMode::percentile : RangeMode::mean_sd;
    request.scale = step % 4 < 2 ? Scale::linear : Scale::log;
    benchmark::DoNotOptimize(finder.summary(finder.range(request)));
  }
}
BENCHMARK(BM_next_range)->Unit(benchmark::kMillisecond);

// FC-79: thumbnails of 32 layers × 32 heads, from the numbers to the first picture.
void BM_thumbnails_first_paint(benchmark::State& state) {
  constexpr int kLayers = 32, kHeads = 32, kSide = 64;
  auto snapshot = std::make_shared<ThumbnailSnapshot>();
  for (int layer = 0; layer < kLayers; ++layer) snapshot->layers.push_back(layer);
  snapshot->n_heads = kHeads;
  snapshot->side = kSide;
  std::vector<float> values(std::size_t{kLayers} * kHeads * kSide * kSide);
  std::mt19937 random(3);
  std::uniform_real_distribution<float> uniform;
  for (float& value : values) value = uniform(random);
  snapshot->values = std::make_shared<const std::vector<float>>(std::move(values));
  std::vector<CellSpan> spans;
  for (int row = 0; row < kLayers * kHeads * kSide; ++row) spans.push_back({0, row % kSide + 1});
  snapshot->all =
      Grid(kLayers * kHeads * kSide, kSide, snapshot->values).with_spans(std::move(spans));
  for (auto _ : state) {
    ThumbnailGrid grid;
    grid.resize(1000, 700);
    grid.setSnapshot(snapshot);
    grid.setRange(RangeFinder({snapshot->all}).range({}));
    benchmark::DoNotOptimize(grid.grab());
  }
}
BENCHMARK(BM_thumbnails_first_paint)->Unit(benchmark::kMillisecond);

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

// From the numbers of a map to the first picture of it: range, pyramid, axes, pixels.
void BM_first_paint(benchmark::State& state) {
  const Grid& grid = causal_map();
  for (auto _ : state) {
    Heatmap heatmap;
    heatmap.resize(1000, 800);
    auto scene = std::make_shared<HeatmapScene>();
    scene->pyramid = Pyramid(grid);
    scene->range = find_range(grid, {});
    heatmap.setScene(std::move(scene));
    benchmark::DoNotOptimize(heatmap.grab());
  }
}
BENCHMARK(BM_first_paint)->Unit(benchmark::kMillisecond);

// One step of dragging or zooming, as the screen sees it.
void BM_frame(benchmark::State& state) {
  const Grid& grid = causal_map();
  Heatmap heatmap;
  heatmap.resize(1000, 800);
  auto scene = std::make_shared<HeatmapScene>();
  scene->pyramid = Pyramid(grid);
  scene->range = {-2, 2};
  for (int i = 0; i < kSize; ++i) {
    scene->rows.labels.push_back("token" + std::to_string(i));
    scene->cols.labels.push_back("token" + std::to_string(i));
  }
  heatmap.setScene(std::move(scene));
  const auto extent = static_cast<double>(state.range(0));
  double left = 0;
  for (auto _ : state) {
    left = left > 300 ? 0 : left + 1;
    heatmap.setView({kSize - extent, left, kSize, left + extent});
    QApplication::processEvents();
    benchmark::DoNotOptimize(heatmap.grab());
  }
}
BENCHMARK(BM_frame)->Arg(60)->Arg(1000)->Arg(1900)->Arg(3700)->Unit(benchmark::kMillisecond);

}  // namespace

int main(int argc, char** argv) {
  qputenv("QT_QPA_PLATFORM", "offscreen");
  QApplication application(argc, argv);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
