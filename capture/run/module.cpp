// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/run/make_engine.h"

// The one symbol that load_engine() looks for.
extern "C" __attribute__((visibility("default"))) sinkscope::Engine* sinkscope_engine() {
  static const std::unique_ptr<sinkscope::Engine> engine = sinkscope::make_engine();
  return engine.get();
}
