// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/output_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/error.h"
#include "core/output_path.h"

namespace sinkscope {

namespace fs = std::filesystem;

void require_new_file(const std::string& path, bool force) {
  require_output_path(path);
  if (!force && is_taken(path))
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{}: exists already; --force replaces it", path));
}

void make_folder_of(const std::string& output) {
  const fs::path folder = fs::path(output).parent_path();
  std::error_code failure;
  if (folder.empty() || fs::exists(folder, failure)) return;
  fs::create_directories(folder, failure);
  if (failure)
    throw Error(ErrorKind::io,
                fmt::format("{}: cannot be made: {}", folder.string(), failure.message()));
}

OutputFile::OutputFile(const std::string& path, bool force, std::ostream& standard_output)
    : path_(path), standard_output_(standard_output) {
  if (is_standard_output()) return;
  require_new_file(path, force);
  require_folder_of(path);
  file_.open(path + ".part", std::ios::binary | std::ios::trunc);
  if (!file_)
    throw Error(ErrorKind::io, fmt::format("{}: cannot be made: {}", path, std::strerror(errno)));
}

OutputFile::~OutputFile() {
  if (!file_.is_open()) return;
  file_.close();
  std::error_code ignored;
  fs::remove(path_ + ".part", ignored);
}

void OutputFile::close() {
  if (is_standard_output()) return;
  file_.flush();
  if (!file_) throw Error(ErrorKind::io, fmt::format("{}: cannot be written (disk full?)", path_));
  file_.close();
  std::error_code failure;
  fs::rename(path_ + ".part", path_, failure);
  if (failure) throw Error(ErrorKind::io, fmt::format("{}: {}", path_, failure.message()));
}

}  // namespace sinkscope
