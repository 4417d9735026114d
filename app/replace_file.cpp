// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/replace_file.h"

#include <fmt/format.h>

#include <filesystem>

#include "core/error.h"
#include "core/output_path.h"

namespace sinkscope {

void replace_file(const std::string& from, const std::string& to) {
  namespace fs = std::filesystem;
  const std::string suffix = ".copy.tmp", copy = to + suffix;
  require_output_path(to, suffix);
  require_folder_of(to);
  std::error_code failure, ignored;
  fs::copy_file(from, copy, fs::copy_options::overwrite_existing, failure);
  if (!failure) fs::rename(copy, to, failure);
  if (!failure) return;
  fs::remove(copy, ignored);
  throw Error(ErrorKind::io, fmt::format("{}: cannot be written: {}", to, failure.message()));
}

}  // namespace sinkscope
