// SPDX-License-Identifier: GPL-3.0-or-later
// A whole PDF of one map, from the figure as a value to the bytes of the file.
#include <benchmark/benchmark.h>

#include <QGuiApplication>
#include <vector>

#include "views/figure/write_figure.h"

namespace sinkscope {
namespace {

// Values without regularity, so that the compressor has its full work.
Figure map_figure(int side) {
  std::vector<float> values(static_cast<std::size_t>(side) * static_cast<std::size_t>(side));
  std::uint32_t state = 1;
  for (float& value : values) {
    state = state * 1664525U + 1013904223U;
    value = static_cast<float>(state >> 8) / static_cast<float>(1 << 24);
  }
  Figure figure;
  FigurePanel panel;
  panel.title = "A map";
  panel.x.high = panel.y.low = side - 0.5;
  panel.x.low = panel.y.high = -0.5;
  panel.maps = {{Grid(side, side, std::move(values)), 0, false, false}};
  panel.has_color_bar = true;
  figure.panels = {panel};
  figure.colors = {{"value", ValueRange(), colormap("viridis"), {}, ""}};
  return figure;
}

void pdf_of_a_map(benchmark::State& state) {
  qputenv("QT_QPA_PLATFORM", "offscreen");
  int argc = 1;
  char name[] = "sinkscope_figure_bench";
  char* argv[] = {name, nullptr};
  const QGuiApplication application(argc, argv);
  const Figure figure = map_figure(static_cast<int>(state.range(0)));
  std::size_t bytes = 0;
  for (auto _ : state) bytes = figure_file(figure, FigureFormat::pdf, {}).size();
  state.counters["bytes"] = static_cast<double>(bytes);
}

BENCHMARK(pdf_of_a_map)->Arg(256)->Arg(2048)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace sinkscope
