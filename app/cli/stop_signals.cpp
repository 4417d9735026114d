// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/stop_signals.h"

#include <atomic>

namespace sinkscope {
namespace {

// Signal handlers belong to the process, and so does what they leave behind.
std::atomic<bool> stop_was_asked{false};
std::atomic<bool> is_listening{false};
static_assert(std::atomic<bool>::is_always_lock_free, "set from a signal handler");

// The first signal asks to stop; the default action is back for the second.
void on_signal(int) {
  stop_was_asked = true;
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  std::signal(SIGHUP, SIG_DFL);
}

}  // namespace

StopSignals::StopSignals() : is_outermost_(!is_listening.exchange(true)) {
  if (!is_outermost_) return;
  stop_was_asked = false;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, &old_interrupt_);
  sigaction(SIGTERM, &action, &old_terminate_);
  sigaction(SIGHUP, &action, &old_hangup_);
  // nohup: a closed terminal is not to end it.
  if (old_hangup_.sa_handler == SIG_IGN) sigaction(SIGHUP, &old_hangup_, nullptr);
}

StopSignals::~StopSignals() {
  if (!is_outermost_) return;
  sigaction(SIGINT, &old_interrupt_, nullptr);
  sigaction(SIGTERM, &old_terminate_, nullptr);
  sigaction(SIGHUP, &old_hangup_, nullptr);
  is_listening = false;
}

bool StopSignals::asked() const { return stop_was_asked; }

}  // namespace sinkscope
