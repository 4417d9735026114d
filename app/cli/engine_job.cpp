// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/engine_job.h"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "app/cli/stop_signals.h"

namespace sinkscope {
namespace {

// What the job's thread leaves behind; guarded by `mutex` until `is_done`.
struct Outcome {
  std::mutex mutex;
  std::condition_variable done;
  bool is_done = false;
  std::exception_ptr failure;
};

}  // namespace

void run_with_progress(const std::function<void(JobContext)>& job, int n_layers, ProgressMode mode,
                       Console& console, const JobPlace& place) {
  StopSignals signals;
  Progress progress;
  Outcome outcome;
  {
    ProgressPrinter printer(mode, console, n_layers, place);
    std::jthread worker([&](const std::stop_token& stop) {
      std::exception_ptr failure;
      try {
        job(JobContext{stop, progress});
      } catch (...) {
        failure = std::current_exception();
      }
      const std::lock_guard lock(outcome.mutex);
      outcome.failure = failure;
      outcome.is_done = true;
      outcome.done.notify_one();
    });
    std::unique_lock lock(outcome.mutex);
    while (!outcome.done.wait_for(lock, std::chrono::milliseconds(100),
                                  [&] { return outcome.is_done; })) {
      if (signals.asked()) worker.request_stop();
      printer.update(progress);
    }
  }
  if (outcome.failure) std::rethrow_exception(outcome.failure);
}

}  // namespace sinkscope
