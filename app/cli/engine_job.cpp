// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/engine_job.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <exception>
#include <mutex>
#include <thread>

namespace sinkscope {
namespace {

std::atomic<bool> stop_was_asked{false};
static_assert(std::atomic<bool>::is_always_lock_free, "set from a signal handler");

// The first signal asks to stop; the default action is back for the second.
void on_signal(int) {
  stop_was_asked = true;
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

class StopSignals {
 public:
  StopSignals() {
    stop_was_asked = false;
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigaction(SIGINT, &action, &old_interrupt_);
    sigaction(SIGTERM, &action, &old_terminate_);
  }
  ~StopSignals() {
    sigaction(SIGINT, &old_interrupt_, nullptr);
    sigaction(SIGTERM, &old_terminate_, nullptr);
  }
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  bool asked() const { return stop_was_asked; }

 private:
  struct sigaction old_interrupt_ {};
  struct sigaction old_terminate_ {};
};

// What the job's thread leaves behind; guarded by `mutex` until `is_done`.
struct Outcome {
  std::mutex mutex;
  std::condition_variable done;
  bool is_done = false;
  std::exception_ptr failure;
};

}  // namespace

void run_with_progress(const std::function<void(JobContext)>& job, int n_layers, ProgressMode mode,
                       Console& console) {
  StopSignals signals;
  Progress progress;
  Outcome outcome;
  {
    ProgressPrinter printer(mode, console, n_layers);
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
