// SPDX-License-Identifier: GPL-3.0-or-later
#include <malloc.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <limits>
#include <memory>

#include "capture/engine.h"
#include "capture/model_comparison.h"
#include "core/error.h"
#ifdef SINKSCOPE_WITH_TORCH
#include "core/load_module.h"
#endif

namespace sinkscope {
namespace {

std::atomic<bool> is_loaded{false};

#ifdef SINKSCOPE_WITH_TORCH
// Activations and weights of one size come and go in every layer: given back to the system they
// would cost a page fault every 4 KiB, and heaps that grow by single pages a system call each.
// Together that is a tenth of a short recording.
void keep_heaps() {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  mallopt(M_TOP_PAD, 64 << 20);
}

// The heap of this thread in large pages: LibTorch fills 40 MB in small pieces while it is loaded.
void enlarge_pages() {
  constexpr std::size_t kPage = 2 << 20, kBytes = 24 * kPage;
  void* const room = std::malloc(kBytes);
  if (room == nullptr) return;
  void* begin = room;
  std::size_t left = kBytes;
  if (std::align(kPage, kPage, begin, left) != nullptr) madvise(begin, left, MADV_HUGEPAGE);
  std::free(room);  // stays with the heap: see keep_heaps
}

Engine* open_module() {
  keep_heaps();
  enlarge_pages();
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

// Both are faces of one object.
ModelComparison& load_model_comparison() { return dynamic_cast<ModelComparison&>(load_engine()); }

}  // namespace sinkscope
