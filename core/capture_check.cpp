// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/capture_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace sinkscope {
namespace {

void append_paths(const CaptureReader& reader, const std::string& run, const std::string& group,
                  std::vector<std::string>& paths) {
  for (const std::string& child : reader.children(run, group)) {
    const std::string path = group.empty() ? child : fmt::format("{}/{}", group, child);
    if (reader.is_dataset(run, path))
      paths.push_back(path);
    else
      append_paths(reader, run, path, paths);
  }
}

void read_ends(const CaptureReader& reader, const std::string& run, const std::string& path) {
  if (reader.type(run, path) == ElementType::text) {
    reader.read_texts(run, path);
    return;
  }
  constexpr std::int64_t kMost = 1 << 16;
  const std::vector<std::int64_t> dims = reader.dims(run, path);
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
  append_paths(reader, run, "", paths);
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
