// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <atomic>
#include <cstdint>
#include <stop_token>

namespace sinkscope {

enum class Stage { idle, reading, running, head, closing };

// How far a long job is. Written by the job, polled by whoever shows it (10 times a second is
// plenty); never signaled. Reading from any thread at any time is safe.
struct Progress {
  std::atomic<Stage> stage{Stage::idle};
  std::atomic<int> layer{0};           // block index now at work
  std::atomic<std::int64_t> done{0};   // units of work finished, of `total`
  std::atomic<std::int64_t> total{0};  // 0 = not known yet
};

// What a long function needs from its caller. `stop` is checked at least once a tile; a canceled
// job returns std::nullopt and leaves whole layers behind.
struct JobContext {
  std::stop_token stop;
  Progress& progress;
};

}  // namespace sinkscope
