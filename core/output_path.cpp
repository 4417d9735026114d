// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/output_path.h"

#include <fmt/format.h>

#include <filesystem>
#include <string_view>

#include "core/error.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestName = 255;  // NAME_MAX of every file system in use, in bytes

const char* name_of(fs::file_type type) {
  switch (type) {
    case fs::file_type::directory:
      return "a folder";
    case fs::file_type::fifo:
      return "a pipe";
    case fs::file_type::character:
    case fs::file_type::block:
      return "a device";
    case fs::file_type::socket:
      return "a socket";
    default:
      return "something else";
  }
}

void require_regular_or_absent(const std::string& path) {
  std::error_code failure;
  const fs::file_type type = fs::status(path, failure).type();  // of what a link leads to
  if (type == fs::file_type::regular || type == fs::file_type::not_found) return;
  if (type == fs::file_type::none || type == fs::file_type::unknown)
    throw Error(ErrorKind::io, fmt::format("{}: cannot be looked at: {}", path, failure.message()));
  throw Error(ErrorKind::invalid_argument,
              fmt::format("{}: expected a file, found {}", path, name_of(type)));
}

// NAME.part and what stands beside it (core/FORMAT.md, section 14).
bool is_unfinished_name(std::string_view name) {
  for (const std::string_view suffix : {".tmp", ".before", ".state", ".redo"})
    if (name.ends_with(suffix))
      return is_unfinished_name(name.substr(0, name.size() - suffix.size()));
  return name.ends_with(".part");
}

}  // namespace

void require_output_path(const std::string& path, const std::string& longest_suffix) {
  if (path.empty())
    throw Error(ErrorKind::invalid_argument, "-o: expected a file's name, found an empty one");
  const fs::path name = fs::path(path).filename();
  const std::size_t longest = kLongestName - longest_suffix.size();
  if (name.native().size() > longest)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{}…: expected a file's name of at most {} bytes, found {}",
                            path.substr(0, 40), longest, name.native().size()));
  if (is_unfinished_name(name.native()))
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{}: is how an unfinished file is named: expected another name", path));
  require_regular_or_absent(path);
  require_regular_or_absent(path + ".part");
}

void require_capture_path(const std::string& path) {
  if (path == "-")
    throw Error(ErrorKind::invalid_argument,
                "-o -: a capture cannot be written to standard output: expected a file's name");
  require_output_path(path, kCaptureSuffix);
}

bool is_taken(const std::string& path) {
  std::error_code ignored;
  return fs::symlink_status(path, ignored).type() != fs::file_type::not_found;
}

void require_not_input(const std::string& output, const std::vector<std::string>& inputs) {
  std::error_code ignored;
  for (const std::string& input : inputs) {
    if (fs::equivalent(output, input, ignored))
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("{}: -o is the input itself ({})", output, input));
    if (fs::equivalent(output + ".part", input, ignored))
      throw Error(ErrorKind::invalid_argument,
                  fmt::format("{}: is made as {}.part, which is the input itself", output, output));
  }
}

void require_folder_of(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  std::error_code failure;
  if (folder.empty() || fs::is_directory(folder, failure)) return;
  throw Error(ErrorKind::io,
              fmt::format("{}: cannot be made: its folder {} is {}", path, folder.native(),
                          fs::exists(folder, failure) ? "no folder" : "not there"));
}

}  // namespace sinkscope
