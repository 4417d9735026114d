// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/temporary_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "core/error.h"

namespace sinkscope {

namespace fs = std::filesystem;

TemporaryFolder::TemporaryFolder()
    : path_((fs::temp_directory_path() / "sinkscope-XXXXXX").string()) {
  if (mkdtemp(path_.data()) == nullptr)
    throw Error(ErrorKind::io, fmt::format("{}: cannot be made; set TMPDIR", path_));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string TemporaryFolder::file(const std::string& name) const {
  return (fs::path(path_) / name).string();
}

}  // namespace sinkscope
