// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <csignal>

namespace sinkscope {

// While one is alive, the first SIGINT, SIGTERM or SIGHUP only asks to stop; a second one ends
// the process. They nest: what the outermost was asked, the inner ones see.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  bool asked() const;

 private:
  bool is_outermost_;
  struct sigaction old_interrupt_ {};
  struct sigaction old_terminate_ {};
  struct sigaction old_hangup_ {};
};

}  // namespace sinkscope
