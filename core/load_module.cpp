// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/load_module.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <vector>

#include "core/error.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> candidates(const std::string& file, const fs::path& built) {
  std::vector<fs::path> paths;
  char self[PATH_MAX];
  const ssize_t n = readlink("/proc/self/exe", self, sizeof self);
  if (n > 0) {
    const fs::path folder = fs::path(std::string(self, static_cast<std::size_t>(n))).parent_path();
    paths = {folder / file, folder.parent_path() / "lib" / file,
             folder.parent_path() / "lib" / "sinkscope" / file};
  }
  if (!built.empty()) paths.push_back(built);
  return paths;
}

}  // namespace

void make_threads_impatient() {
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) setenv("GOMP_SPINCOUNT", "0", 0);
}

void* module_entry(const std::string& file, const fs::path& built, const char* symbol) {
  make_threads_impatient();
  std::string reason = "file not found";
  for (const fs::path& path : candidates(file, built)) {
    if (!fs::exists(path)) continue;
    void* const module = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (module == nullptr) {
      reason = dlerror();
      continue;
    }
    if (void* const entry = dlsym(module, symbol)) return entry;
    reason = fmt::format("{} has no entry {}", path.string(), symbol);
  }
  throw Error(ErrorKind::unsupported, fmt::format("{} cannot be loaded: {}", file, reason));
}

}  // namespace sinkscope
