// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "core/capture_writer.h"

namespace sinkscope {

// One writer thread behind a bounded queue, so that disk and arithmetic overlap. Jobs run in order.
// The first failure is kept and thrown at the next push() or drain(); jobs after it are dropped.
class WriteQueue {
 public:
  using Job = std::function<void(CaptureWriter&)>;

  WriteQueue(CaptureWriter& writer, std::int64_t max_bytes);
  // Finishes what is queued (errors are lost: call drain() first).
  ~WriteQueue();

  // Waits while more than max_bytes are queued. `n_bytes` is what the job holds on to.
  void push(std::int64_t n_bytes, Job job);
  // Waits until everything is written.
  void drain();
  // Seconds spent in jobs; exact after drain().
  double seconds() const;

 private:
  void run();
  void throw_if_failed();

  CaptureWriter& writer_;
  const std::int64_t max_bytes_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<std::int64_t, Job>> jobs_;
  std::int64_t queued_bytes_ = 0;
  double seconds_ = 0;
  bool busy_ = false, closing_ = false;
  std::exception_ptr failure_;
  std::jthread thread_;
};

}  // namespace sinkscope
