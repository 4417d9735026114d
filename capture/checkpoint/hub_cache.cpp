// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/hub_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "capture/checkpoint/printable.h"
#include "capture/checkpoint/text_file.h"
#include "core/error.h"

namespace sinkscope {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kPrefix = "models--";

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

bool is_hub_name(const std::string& name) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.' || c == '/';
  };
  const auto slashes = std::count(name.begin(), name.end(), '/');
  return !name.empty() && name.front() != '/' && name.back() != '/' && name.front() != '.' &&
         slashes <= 1 && name.find("/.") == std::string::npos &&
         std::all_of(name.begin(), name.end(), plain);
}

std::vector<std::string> snapshots_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code failed;
  for (fs::directory_iterator it(folder / "snapshots", failed), end; !failed && it != end;
       it.increment(failed)) {
    names.push_back(it->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

std::string hub_cache_folder() {
  const auto below = [](const std::string& folder, const char* rest) {
    return (fs::path(folder) / rest).string();
  };
  for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"})
    if (const std::string cache = environment(name); !cache.empty()) return cache;
  if (const std::string home = environment("HF_HOME"); !home.empty()) return below(home, "hub");
  if (const std::string cache = environment("XDG_CACHE_HOME"); !cache.empty())
    return below(cache, "huggingface/hub");
  const std::string home = environment("HOME");
  return home.empty() ? home : below(home, ".cache/huggingface/hub");
}

std::optional<std::string> snapshot_of(const std::string& folder) {
  std::error_code ignored;
  const fs::path root(folder);
  if (!fs::is_directory(root / "snapshots", ignored)) return std::nullopt;
  const std::vector<std::string> snapshots = snapshots_in(root);
  if (snapshots.empty()) {
    throw Error(ErrorKind::not_found, folder +
                                          ": the hub cache holds no snapshot of this model "
                                          "(incomplete download?)");
  }
  if (fs::exists(root / "refs" / "main", ignored)) {
    std::string commit = read_text_file((root / "refs" / "main").string());
    commit.erase(commit.find_last_not_of(" \t\r\n") + 1);
    if (std::find(snapshots.begin(), snapshots.end(), commit) == snapshots.end()) {
      throw Error(ErrorKind::not_found,
                  fmt::format("{}: refs/main names snapshot {}, the cache holds {}: give the "
                              "snapshot's folder",
                              folder, printable(commit), listed(snapshots)));
    }
    return (root / "snapshots" / commit).string();
  }
  if (snapshots.size() > 1) {
    throw Error(
        ErrorKind::not_found,
        fmt::format("{}: no refs/main and {} snapshots ({}): give the folder of the one that "
                    "is meant",
                    folder, snapshots.size(), listed(snapshots)));
  }
  return (root / "snapshots" / snapshots.front()).string();
}

std::optional<std::string> find_in_hub_cache(const std::string& name) {
  const std::string cache = hub_cache_folder();
  if (!is_hub_name(name) || cache.empty()) return std::nullopt;
  const std::size_t slash = name.find('/');
  const std::string folder =
      slash == std::string::npos
          ? fmt::format("{}{}", kPrefix, name)
          : fmt::format("{}{}--{}", kPrefix, name.substr(0, slash), name.substr(slash + 1));
  return snapshot_of((fs::path(cache) / folder).string());
}

std::string hub_name_of(const std::string& path) {
  std::string previous;
  for (const fs::path& part : fs::path(path)) {
    if (part == "snapshots" && previous.starts_with(kPrefix)) {
      const std::string name = previous.substr(kPrefix.size());
      const std::size_t dashes = name.find("--");
      if (dashes == std::string::npos) return name;
      return fmt::format("{}/{}", name.substr(0, dashes), name.substr(dashes + 2));
    }
    previous = part.string();
  }
  return "";
}

}  // namespace sinkscope
