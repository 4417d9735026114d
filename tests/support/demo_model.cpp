// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/demo_model.h"

#include <filesystem>

namespace sinkscope::test {

std::string demo_model() {
  namespace fs = std::filesystem;
  if (const char* set = std::getenv("SINKSCOPE_DEMO_MODEL"); set != nullptr)
    return fs::exists(set) ? set : "";
  const fs::path folder = fs::path(SINKSCOPE_SOURCE_DIR) / "demo";
  if (!fs::is_directory(folder)) return "";
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".gguf") return entry.path().string();
  return "";
}

}  // namespace sinkscope::test
