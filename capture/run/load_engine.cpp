// SPDX-License-Identifier: GPL-3.0-or-later
#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "capture/engine.h"
#include "core/error.h"

namespace sinkscope {
namespace {

std::atomic<bool> is_loaded{false};

constexpr const char* kPatience = "GOMP_SPINCOUNT";

#ifdef SINKSCOPE_WITH_TORCH
// Where the module may lie: beside the executable, in ../lib from it, or where it was built.
std::vector<std::filesystem::path> candidates() {
  std::vector<std::filesystem::path> paths;
  char self[PATH_MAX];
  const ssize_t n = readlink("/proc/self/exe", self, sizeof self);
  if (n > 0) {
    const std::filesystem::path folder =
        std::filesystem::path(std::string(self, static_cast<std::size_t>(n))).parent_path();
    paths.push_back(folder / "libsinkscope_engine.so");
    paths.push_back(folder.parent_path() / "lib" / "libsinkscope_engine.so");
  }
  paths.emplace_back(SINKSCOPE_ENGINE_FILE);
  return paths;
}

Engine* open_module() {
  setenv(kPatience, "0", 0);
  std::string reason = "file not found";
  for (const auto& path : candidates()) {
    if (!std::filesystem::exists(path)) continue;
    void* module = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (module == nullptr) {
      reason = dlerror();
      continue;
    }
    using Entry = Engine* (*)();
    const auto entry = reinterpret_cast<Entry>(dlsym(module, "sinkscope_engine"));
    if (entry != nullptr) return entry();
    reason = path.string() + " has no sinkscope_engine entry";
  }
  throw Error(ErrorKind::unsupported,
              fmt::format("the engine libsinkscope_engine.so cannot be loaded: {}", reason));
}
#endif

}  // namespace

void restart_with_impatient_threads([[maybe_unused]] char** argv) {
#ifdef SINKSCOPE_WITH_TORCH
  if (std::getenv(kPatience) != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  void* library = dlopen("libgomp.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return;
  dlclose(library);
  setenv(kPatience, "0", 0);
  execv("/proc/self/exe", argv);  // returns only where it failed: a little slower, no harm
#endif
}

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
