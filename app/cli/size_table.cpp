// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/size_table.h"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>
#include <utility>

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

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// What one more object takes beside its values, measured with HDF5 1.10 as core/h5 sets it up: the
// header of a dataset with its attributes and their texts; a group with its table of names.
constexpr std::int64_t kDatasetBytes = 360, kGroupBytes = 1640, kFileBytes = 4096;
// A text in the file's heap: its entry, whole words of 8 bytes.
std::int64_t text_bytes(const std::string& text) {
  return 16 + ceil_div(static_cast<std::int64_t>(text.size()), 8) * 8;
}

// Leaves of an index of chunks have room for 64; those of chunks that come in order are cut at 57.
std::int64_t index_bytes(std::int64_t n_chunks, std::int64_t rank) {
  const std::int64_t node = 536 + 65 * (16 + 8 * rank);
  return (ceil_div(n_chunks, 57) + (n_chunks > 64 ? 1 : 0)) * node;
}

// Keys that the map of a layer reaches back to, its own included; 0 = all before it.
struct Reach {
  int window = 0;
  bool is_causal = true;
};

// Of the pattern's slots. Where layers are reduced to one map, the widest counts.
std::vector<Reach> reaches_of(const PatternRecord& pattern, const ArchSpec& spec) {
  std::vector<Reach> reaches;
  for (const int layer : pattern.layers)
    reaches.push_back({spec.window.empty() ? 0 : spec.window[static_cast<std::size_t>(layer)],
                       !spec.bidirectional});
  if (!pattern.reduces(ReduceOver::layers) || reaches.empty()) return reaches;
  Reach widest = reaches.front();
  for (const Reach& reach : reaches)
    widest.window =
        widest.window == 0 || reach.window == 0 ? 0 : std::max(widest.window, reach.window);
  return {widest};
}

// Chunks of the map of one head that hold a key which some of their queries sees: only they are
// written.
std::int64_t chunks_of_map(const DatasetSpec& spec, const std::vector<int>& recorded,
                           const Reach& reach) {
  const std::int64_t rows = spec.dims[2], keys = spec.dims[3], side = spec.chunk[2],
                     key_side = spec.chunk[3];
  const auto query = [&](std::int64_t row) {
    return recorded.empty() ? row : std::int64_t{recorded[static_cast<std::size_t>(row)]};
  };
  std::int64_t chunks = 0;
  for (std::int64_t row = 0; row < rows; row += side) {
    const std::int64_t end = reach.is_causal ? query(std::min(row + side, rows) - 1) + 1 : keys;
    const std::int64_t begin =
        reach.window > 0 ? std::max<std::int64_t>(0, query(row) - reach.window + 1) : 0;
    chunks += ceil_div(end, key_side) - begin / key_side;
  }
  return chunks;
}

// Chunks that are written; they are stored whole.
std::int64_t chunks_of(const DatasetSpec& spec, const CaptureLayout& layout, const ArchSpec& arch) {
  if (spec.path == "attention/pattern") {
    std::int64_t chunks = 0;
    for (const Reach& reach : reaches_of(layout.pattern, arch))
      chunks += spec.dims[1] * chunks_of_map(spec, layout.pattern.rows, reach);
    return chunks;
  }
  std::int64_t chunks = 1;
  for (std::size_t i = 0; i < spec.dims.size(); ++i)
    chunks *= ceil_div(spec.dims[i], spec.chunk[i]);
  return chunks;
}

struct Stored {
  std::int64_t values = 0, structure = 0;
};

Stored stored_bytes(const DatasetSpec& spec, const CaptureLayout& layout, const ArchSpec& arch) {
  if (spec.type == ElementType::text) {
    std::int64_t n = 16;  // a reference to the heap
    for (const std::int64_t dim : spec.dims) n *= dim;
    return {0, kDatasetBytes + n};
  }
  if (spec.chunk.empty() || spec.n_bytes() == 0) return {spec.n_bytes(), kDatasetBytes};
  std::int64_t chunk = element_size(spec.type);
  for (const std::int64_t side : spec.chunk) chunk *= side;
  const std::int64_t n = chunks_of(spec, layout, arch);
  return {n * chunk, kDatasetBytes + index_bytes(n, static_cast<std::int64_t>(spec.dims.size()))};
}

// Groups that the datasets of one run lie in, the run's own included.
std::int64_t n_groups(const std::vector<DatasetSpec>& specs) {
  std::set<std::string> groups = {""};
  for (const DatasetSpec& spec : specs)
    for (auto cut = spec.path.find('/'); cut != std::string::npos;
         cut = spec.path.find('/', cut + 1))
      groups.insert(spec.path.substr(0, cut));
  return static_cast<std::int64_t>(groups.size());
}

std::int64_t texts_of(const CaptureLayout& layout, const RunInput& run) {
  std::int64_t bytes = text_bytes(run.text) + text_bytes(run.what_if);
  for (const std::string& label : run.token_text) bytes += text_bytes(label);
  for (const std::string& site : residual_sites(layout.model.n_layers, layout.parallel_blocks))
    bytes += text_bytes(site);
  return bytes;
}

// Adds up groups of datasets, in the order in which they come.
class Table {
 public:
  void add(const std::string& group, std::int64_t bytes) {
    if (row_of_.emplace(group, rows_.size()).second) {
      rows_.push_back({group, "", 0});
      largest_.push_back(-1);
    }
    rows_[row_of_[group]].bytes += bytes;
  }
  void add(const DatasetSpec& spec, std::int64_t bytes) {
    const std::string group = group_of(spec.path);
    add(group, bytes);
    const std::size_t row = row_of_[group];
    if (spec.n_bytes() <= largest_[row]) return;
    largest_[row] = spec.n_bytes();
    rows_[row].shape = format_shape(spec.dims);
  }
  std::vector<SizeRow> take() { return std::move(rows_); }

 private:
  std::vector<SizeRow> rows_;
  std::map<std::string, std::size_t> row_of_;
  std::vector<std::int64_t> largest_;
};

}  // namespace

std::vector<SizeRow> size_table(const CaptureLayout& layout, const ArchSpec& arch) {
  // Runs that have the same datasets are looked at once: those of one length, but for the first,
  // which holds the model.
  using Key = std::tuple<bool, int, std::size_t, bool>;
  std::map<Key, std::pair<int, std::int64_t>> alike;  // -> (a run of them, how many)
  std::int64_t structure =
      kFileBytes + text_bytes(layout.model.config_text) + text_bytes(layout.provenance.command);
  for (std::size_t r = 0; r < layout.runs.size(); ++r) {
    const RunInput& run = layout.runs[r];
    auto& entry = alike[{r > 0, run.seq_len(), run.bos_positions.size(), run.edit_of >= 0}];
    if (entry.second++ == 0) entry.first = static_cast<int>(r);
    structure += texts_of(layout, run);
  }
  Table table;
  for (const auto& [key, entry] : alike) {
    const auto& [run, count] = entry;
    const std::vector<DatasetSpec> specs = datasets_of(layout, run);
    for (const DatasetSpec& spec : specs) {
      const Stored stored = stored_bytes(spec, layout, arch);
      table.add(spec, stored.values * count);
      structure += stored.structure * count;
    }
    structure += n_groups(specs) * kGroupBytes * count;
  }
  table.add("structure", structure);
  return table.take();
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
