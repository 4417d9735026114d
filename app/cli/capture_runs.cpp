// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/capture_runs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>

#include "core/error.h"

namespace sinkscope {

bool looks_like_capture(const std::string& path) {
  static constexpr std::array<char, 8> kMagic = {'\x89', 'H', 'D', 'F', '\r', '\n', '\x1a', '\n'};
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  std::array<char, 8> head{};
  std::ifstream file(path, std::ios::binary);
  file.read(head.data(), head.size());
  return file && head == kMagic;
}

namespace {

// The runs that the user gave this name ("fox").
std::vector<std::string> runs_named(const CaptureReader& reader, const std::string& name) {
  std::vector<std::string> found;
  for (const std::string& run : reader.runs())
    if (reader.has_attribute(run, "", "name") && reader.text_attribute(run, "", "name") == name)
      found.push_back(run);
  return found;
}

}  // namespace

std::vector<std::string> pick_runs(const CaptureReader& reader, const std::string& in_path,
                                   const std::optional<std::string>& flag, Console& console) {
  if (!in_path.empty() && flag && *flag != in_path)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("--run {} contradicts {}::{}", *flag, reader.path(), in_path));
  const std::vector<std::string>& runs = reader.runs();
  const std::string name = flag.value_or(in_path);
  if (name == "all") return runs;
  if (name.empty()) {
    if (runs.size() > 1)
      console.note(fmt::format("{}: {} of {} runs; --run NAME or --run all for others",
                               reader.path(), reader.default_run(), runs.size()));
    return {reader.default_run()};
  }
  const auto has = [&](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const bool is_twin = has(reader.edits(name.substr(0, name.find("_edit"))));
  if (!has(runs) && !is_twin) {
    const std::vector<std::string> so_named = runs_named(reader, name);
    if (so_named.size() == 1) return so_named;
    if (so_named.size() > 1)
      throw Error(ErrorKind::not_found,
                  fmt::format("{}: {} runs are named '{}': expected one of {}", reader.path(),
                              so_named.size(), name, fmt::join(so_named, ", ")));
    const std::string there = runs.size() > 8 ? fmt::format("{} to {}", runs.front(), runs.back())
                                              : fmt::format("{}", fmt::join(runs, ", "));
    throw Error(ErrorKind::not_found, fmt::format("{}: expected one of its runs ({}), found '{}'",
                                                  reader.path(), there, name));
  }
  return {name};
}

std::string pick_run(const CaptureReader& reader, const std::string& in_path,
                     const std::optional<std::string>& flag, Console& console) {
  if (flag.value_or(in_path) == "all")
    throw Error(ErrorKind::invalid_argument, "--run: expected one run, found 'all'");
  return pick_runs(reader, in_path, flag, console).front();
}

}  // namespace sinkscope
