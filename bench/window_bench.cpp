// SPDX-License-Identifier: GPL-3.0-or-later
// A whole window on a large capture, named by SINKSCOPE_BENCH_CAPTURE: from opening it to its first
// picture, and the memory that takes. A fresh process measures one opening.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <QApplication>
#include <QElapsedTimer>
#include <cstdlib>
#include <fstream>
#include <string>

#include "app/gui/main_window.h"
#include "views/panels/panel.h"

namespace {

using namespace sinkscope;

// "VmHWM" or "RssAnon" of this process, in MB.
double memory_mb(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (double kb = 0; word == field + ":" && status >> kb) return kb / 1024;
  return 0;
}

template <class Condition>
void turn_until(Condition condition) {
  while (!condition()) QApplication::processEvents(QEventLoop::WaitForMoreEvents);
}

const char* capture_path() { return std::getenv("SINKSCOPE_BENCH_CAPTURE"); }

// The longest time in which the event loop did not turn.
class Gaps : public QObject {
 public:
  Gaps() { startTimer(1, Qt::PreciseTimer); }
  double longest_ms() const { return longest_; }
  void forget() {
    longest_ = 0;
    since_.start();
  }

 protected:
  void timerEvent(QTimerEvent*) override {
    if (since_.isValid())
      longest_ = std::max(longest_, static_cast<double>(since_.nsecsElapsed()) / 1e6);
    since_.start();
  }

 private:
  QElapsedTimer since_;
  double longest_ = 0;
};

void BM_open_capture(benchmark::State& state) {
  if (capture_path() == nullptr) {
    state.SkipWithError("SINKSCOPE_BENCH_CAPTURE names no capture");
    return;
  }
  for (auto _ : state) {
    MainWindow window;
    window.show();
    window.open(QString::fromUtf8(capture_path()));
    turn_until([&] { return window.session().overview().snapshot != nullptr; });
    benchmark::DoNotOptimize(window.grab());
    state.counters["peak_mb"] = memory_mb("VmHWM");
  }
}
BENCHMARK(BM_open_capture)->Iterations(1)->Unit(benchmark::kMillisecond)->UseRealTime();

// One recorded head of it, the largest map there is: read, prepared, painted; and how long the
// window's thread was busy at once.
void BM_show_head(benchmark::State& state) {
  if (capture_path() == nullptr) {
    state.SkipWithError("SINKSCOPE_BENCH_CAPTURE names no capture");
    return;
  }
  MainWindow window;
  window.show();
  window.open(QString::fromUtf8(capture_path()));
  turn_until([&] { return window.session().overview().snapshot != nullptr; });
  window.showPanel("attention");
  Session& session = window.session();
  turn_until([&] { return session.attention().snapshot != nullptr; });
  Gaps gaps;
  int head = 0;
  for (auto _ : state) {
    head = 1 - head;
    CellRef cell;
    cell.head = head;
    gaps.forget();
    session.select(cell);
    turn_until([&] {
      const auto map = session.attention().snapshot;
      return map != nullptr && map->request.heads == std::vector<int>{head};
    });
    QApplication::processEvents();
    benchmark::DoNotOptimize(window.panel()->grab());
    QApplication::processEvents();
  }
  state.counters["longest_gap_ms"] = gaps.longest_ms();
  state.counters["cells"] = static_cast<double>(session.attention().snapshot->map.size());
  state.counters["peak_mb"] = memory_mb("VmHWM");
}
BENCHMARK(BM_show_head)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace

int main(int argc, char** argv) {
  qputenv("QT_QPA_PLATFORM", "offscreen");
  QApplication application(argc, argv);
  QApplication::setOrganizationName(QStringLiteral("sinkscope-bench"));
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
