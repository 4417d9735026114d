// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/capture_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace sinkscope {
namespace {

// core/FORMAT.md nests four deep. A group that is linked to again from inside itself has no end,
// and groups that share what they hold may stand for more paths than there is time for.
constexpr int kMostDeep = 8;
constexpr std::size_t kMostPaths = 100'000;

void append_paths(const CaptureReader& reader, const std::string& run, const std::string& group,
                  int depth, std::vector<std::string>& paths) {
  if (depth > kMostDeep || paths.size() > kMostPaths)
    throw Error(ErrorKind::corrupt,
                fmt::format("{}: {}/{}: expected at most {} arrays, {} groups deep, found more (a "
                            "group inside itself?)",
                            reader.path(), run, group, kMostPaths, kMostDeep));
  for (const std::string& child : reader.children(run, group)) {
    const std::string path = group.empty() ? child : fmt::format("{}/{}", group, child);
    if (reader.is_dataset(run, path))
      paths.push_back(path);
    else
      append_paths(reader, run, path, depth + 1, paths);
  }
}

void read_ends(const CaptureReader& reader, const std::string& run, const std::string& path) {
  if (reader.type(run, path) == ElementType::text) {
    reader.read_texts(run, path);
    return;
  }
  constexpr std::int64_t kMost = 1 << 16;
  const std::vector<std::int64_t> dims = reader.dims(run, path);
  if (dims.size() == 1 && dims[0] <= kMost && reader.type(run, path) == ElementType::i32) {
    reader.read_i32(run, path);  // a list, whose values are looked at
    return;
  }
  std::vector<std::int64_t> first(dims.size(), 0), last(dims.size(), 0), count(dims.size(), 1);
  std::int64_t n = 1;
  for (std::size_t axis = dims.size(); axis-- > 0;) {
    if (dims[axis] == 0) return;
    if (n * dims[axis] <= kMost) count[axis] = dims[axis];
    n *= count[axis];
    last[axis] = dims[axis] - count[axis];
  }
  reader.read_f64(run, path, first, count);
  reader.read_f64(run, path, last, count);
}

}  // namespace

std::vector<std::string> dataset_paths(const CaptureReader& reader, const std::string& run) {
  std::vector<std::string> paths;
  append_paths(reader, run, "", 0, paths);
  return paths;
}

std::vector<std::string> unreadable_arrays(const CaptureReader& reader, const std::string& run) {
  std::vector<std::string> found;
  for (const std::string& path : dataset_paths(reader, run)) {
    try {
      read_ends(reader, run, path);
    } catch (const Error& e) {
      found.emplace_back(e.what());
    }
  }
  return found;
}

}  // namespace sinkscope
