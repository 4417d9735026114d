// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/record/background.h"

#include <sys/resource.h>
#include <unistd.h>

namespace sinkscope {

void run_in_background() {
  constexpr int kNice = 10;
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNice);  // refused: no harm done
}

}  // namespace sinkscope
