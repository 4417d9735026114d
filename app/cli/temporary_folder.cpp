// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/temporary_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "core/error.h"

namespace sinkscope {

namespace fs = std::filesystem;

namespace {

std::string pattern() {
  std::error_code failure;
  const fs::path folder = fs::temp_directory_path(failure);
  if (!failure) return (folder / "sinkscope-XXXXXX").string();
  const char* given = std::getenv("TMPDIR");
  throw Error(ErrorKind::io,
              fmt::format("{}: expected a folder for temporary files: {}; set TMPDIR",
                          given == nullptr ? "/tmp" : given, failure.message()));
}

}  // namespace

TemporaryFolder::TemporaryFolder() : path_(pattern()) {
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
