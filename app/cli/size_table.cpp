// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/size_table.h"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>

#include "app/cli/format_text.h"
#include "core/error.h"

namespace sinkscope {
namespace {

std::string group_of(const std::string& path) {
  if (path == "attention/pattern" || path == "residual/stream" || path == "logits/full")
    return path;
  const auto first = path.find('/');
  if (path.starts_with("taps/")) return path.substr(0, path.find('/', first + 1));
  return path.substr(0, first);
}

// Bytes that reach the disk. pattern [Lp,Q,R,T] with all rows: only chunks that touch the causal
// triangle, and chunks are stored whole.
std::int64_t stored_bytes(const DatasetSpec& spec) {
  if (spec.path != "attention/pattern" || spec.dims.size() != 4 || spec.chunk.size() != 4)
    return spec.n_bytes();
  const std::int64_t rows = spec.dims[2], keys = spec.dims[3];
  const std::int64_t side_r = spec.chunk[2], side_k = spec.chunk[3];
  if (rows != keys) return spec.n_bytes();
  std::int64_t chunks = 0;
  for (std::int64_t row = 0; row < rows; row += side_r)
    chunks += (std::min(row + side_r, rows) + side_k - 1) / side_k;
  return spec.dims[0] * spec.dims[1] * chunks * side_r * side_k * 4;
}

}  // namespace

std::vector<SizeRow> size_table(const CaptureLayout& layout) {
  std::vector<SizeRow> table;
  std::map<std::string, std::size_t> row_of;
  std::vector<std::int64_t> largest;
  // Runs of one length have the same datasets: 256 short runs are counted once.
  std::map<int, std::pair<int, std::int64_t>> by_length;  // T -> (a run of it, how many)
  for (std::size_t run = 0; run < layout.runs.size(); ++run) {
    auto& entry = by_length[layout.runs[run].seq_len()];
    if (entry.second++ == 0) entry.first = static_cast<int>(run);
  }
  for (const auto& [length, entry] : by_length) {
    for (const DatasetSpec& spec : datasets_of(layout, entry.first)) {
      const std::string group = group_of(spec.path);
      if (row_of.emplace(group, table.size()).second) {
        table.push_back({group, "", 0});
        largest.push_back(-1);
      }
      const std::size_t row = row_of[group];
      table[row].bytes += stored_bytes(spec) * entry.second;
      if (spec.n_bytes() > largest[row]) {
        largest[row] = spec.n_bytes();
        table[row].shape = format_shape(spec.dims);
      }
    }
  }
  return table;
}

std::int64_t total_bytes(const std::vector<SizeRow>& table) {
  std::int64_t total = 0;
  for (const SizeRow& row : table) total += row.bytes;
  return total;
}

std::int64_t stream_bytes(const std::vector<SizeRow>& table) {
  for (const SizeRow& row : table)
    if (row.group == "residual/stream") return row.bytes;
  return 0;
}

void require_free_space(const std::string& path, std::int64_t needed) {
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  struct statvfs state {};
  if (statvfs(folder.c_str(), &state) != 0)
    throw Error(ErrorKind::io, fmt::format("{}: {}", folder.string(), std::strerror(errno)));
  const auto free =
      static_cast<std::int64_t>(state.f_bavail) * static_cast<std::int64_t>(state.f_frsize);
  if (free < needed)
    throw Error(ErrorKind::io,
                fmt::format("{}: the capture takes {}, the disk has {} free; record less with "
                            "--record, --layers, --heads, --rows or --reduce",
                            path, format_bytes(needed), format_bytes(free)));
}

}  // namespace sinkscope
