// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/record_job.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <exception>
#include <mutex>
#include <thread>

#include "core/error.h"

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

// What the worker thread leaves behind; guarded by `mutex` until `is_done`.
struct Outcome {
  std::mutex mutex;
  std::condition_variable done;
  bool is_done = false;
  std::optional<CaptureSummary> summary;
  std::exception_ptr failure;
};

}  // namespace

void require_runnable(const ModelFiles& model) {
  const std::vector<std::string>& obstacles = model.obstacles();
  if (obstacles.empty()) return;
  const std::string more =
      obstacles.size() == 1
          ? std::string()
          : fmt::format(" (and {} more: sinkscope info says which)", obstacles.size() - 1);
  throw Error(ErrorKind::unsupported,
              fmt::format("{}: cannot be run: {}{}", model.path(), obstacles.front(), more));
}

std::optional<CaptureSummary> record_to_file(const ModelFiles& model, const CaptureRequest& request,
                                             const CaptureLayout& layout, const std::string& path,
                                             CaptureWriter::Existing existing, ProgressMode mode,
                                             Console& console) {
  // The file is made while LibTorch is still loading.
  const auto writer = CaptureWriter::create(path, layout, existing, [&](Provenance& provenance) {
    const Engine& engine = load_engine();
    provenance.device = engine.resolve_device(request.device);
    provenance.torch = engine.torch_version();
    provenance.kernel = engine.kernel(request);
  });
  Engine& engine = load_engine();
  StopSignals signals;
  Progress progress;
  Outcome outcome;
  {
    ProgressPrinter printer(mode, console, model.spec().n_layers);
    std::jthread worker([&](std::stop_token stop) {
      std::optional<CaptureSummary> summary;
      std::exception_ptr failure;
      try {
        summary = engine.capture(model, request, *writer, JobContext{stop, progress});
      } catch (...) {
        failure = std::current_exception();
      }
      const std::lock_guard lock(outcome.mutex);
      outcome.summary = summary;
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
  if (outcome.summary) writer->finish();
  return outcome.summary;
}

}  // namespace sinkscope
