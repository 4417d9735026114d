// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <time.h>

#include <QElapsedTimer>
#include <QTimer>
#include <algorithm>

namespace sinkscope {

// How the event loop turns: a timer that is always due.
class Turns {
 public:
  Turns() {
    QObject::connect(&timer_, &QTimer::timeout, [this] { turn(); });
    timer_.start(0);
    turn();
  }
  int n() const { return n_; }
  double longest_work() const { return longest_work_; }  // ms of this thread's own processor time
  double share_late() const { return n_ == 0 ? 1 : static_cast<double>(n_late_) / n_; }

 private:
  static double thread_ms() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
  }
  void turn() {
    const double now = thread_ms();
    if (n_++ > 0) {
      longest_work_ = std::max(longest_work_, now - last_);
      if (wall_.elapsed() > 50) ++n_late_;
    }
    last_ = now;
    wall_.restart();
  }
  QTimer timer_;
  QElapsedTimer wall_;
  int n_ = 0, n_late_ = 0;
  double last_ = 0, longest_work_ = 0;
};

}  // namespace sinkscope
