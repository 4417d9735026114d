// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/shared_files.h"

#include <cstdlib>
#include <filesystem>

namespace sinkscope::test {
namespace fs = std::filesystem;

std::string shared_path(const std::string& relative) {
  const char* set = std::getenv("SINKSCOPE_SHARED");
  const fs::path root =
      set != nullptr ? fs::path(set) : fs::path(SINKSCOPE_SOURCE_DIR).parent_path() / "shared";
  const fs::path path = root / relative;
  return fs::exists(path) ? path.string() : std::string();
}

namespace {
struct Scratch {
  Scratch() {
    std::string pattern = (fs::temp_directory_path() / "sinkscope-test-XXXXXX").string();
    const char* made = mkdtemp(pattern.data());
    if (made != nullptr) root = made;
  }
  ~Scratch() {
    std::error_code ignored;
    if (!root.empty()) fs::remove_all(root, ignored);
  }
  fs::path root;
  int count = 0;
};
}  // namespace

std::string scratch_folder() {
  static Scratch scratch;
  const fs::path folder = scratch.root / std::to_string(scratch.count++);
  fs::create_directories(folder);
  return folder.string();
}

}  // namespace sinkscope::test
