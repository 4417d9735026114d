// SPDX-License-Identifier: GPL-3.0-or-later
#include <atomic>

#include "capture/engine.h"
#include "core/error.h"
#ifdef SINKSCOPE_WITH_TORCH
#include "core/load_module.h"
#endif

namespace sinkscope {
namespace {

std::atomic<bool> is_loaded{false};

#ifdef SINKSCOPE_WITH_TORCH
Engine* open_module() {
  using Entry = Engine* (*)();
  void* const entry =
      module_entry("libsinkscope_engine.so", SINKSCOPE_ENGINE_FILE, "sinkscope_engine");
  return reinterpret_cast<Entry>(entry)();
}
#endif

}  // namespace

bool engine_is_loaded() { return is_loaded; }

std::future<void> warm_engine() {
  return std::async(std::launch::async, [] {
    try {
      load_engine();
    } catch (const Error&) {  // said when the engine is really asked for
    }
  });
}

Engine& load_engine() {
#ifdef SINKSCOPE_WITH_TORCH
  static Engine* const engine = open_module();
  is_loaded = true;
  return *engine;
#else
  throw Error(ErrorKind::unsupported,
              "this program was built without LibTorch: models can be looked at, not run");
#endif
}

}  // namespace sinkscope
