// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/recorded_array.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "app/cli/format_text.h"
#include "core/capture_check.h"
#include "core/error.h"
#include "core/run_done.h"
#include "core/site_name.h"

namespace sinkscope {
namespace {

std::int64_t product(const std::vector<std::int64_t>& dims) {
  std::int64_t n = 1;
  for (const std::int64_t dim : dims) n *= dim;
  return n;
}

RecordedArray whole(const CaptureReader& reader, const std::string& run, const std::string& path) {
  return {path, {}, reader.dims(run, path), reader.type(run, path)};
}

// The part of `path` at index `slot` of its first dimension.
RecordedArray part(const CaptureReader& reader, const std::string& run, const std::string& path,
                   std::int64_t slot) {
  RecordedArray array = whole(reader, run, path);
  if (array.dims.empty() || slot >= array.dims.front())
    throw Error(ErrorKind::corrupt,
                fmt::format("{}: {}/{}: expected more than {} layers, found shape {}",
                            reader.path(), run, path, slot, format_shape(array.dims)));
  array.fixed = {slot};
  array.dims.erase(array.dims.begin());
  return array;
}

[[noreturn]] void not_recorded(const CaptureReader& reader, const std::string& run,
                               const std::string& hook, const std::string& found) {
  throw Error(ErrorKind::not_found,
              fmt::format("{}: {}: {} is not recorded; {}", reader.path(), run, hook, found));
}

// Array `path` at block `layer`, by the list of blocks in `layers_path`; -1 = all blocks.
RecordedArray at_layer(const CaptureReader& reader, const std::string& run, const std::string& hook,
                       const std::string& path, const std::string& layers_path, int layer) {
  if (layer < 0) return whole(reader, run, path);
  const std::vector<int> layers = reader.read_i32(run, layers_path);
  const auto found = std::find(layers.begin(), layers.end(), layer);
  if (found == layers.end())
    not_recorded(reader, run, hook, fmt::format("its blocks are {}", fmt::join(layers, ", ")));
  return part(reader, run, path, found - layers.begin());
}

RecordedArray at_site(const CaptureReader& reader, const std::string& run, const std::string& hook,
                      const SiteName& name) {
  if (!reader.has(run, "residual/stream"))
    not_recorded(reader, run, hook, "--record stream (or maps, all) records the residual stream");
  // What leaves a block enters the next one: it is stored once.
  const bool is_later_pre = name.hook == "hook_resid_pre" && name.layer > 0;
  const std::string site =
      is_later_pre ? SiteName{"hook_resid_post", name.layer - 1}.text() : name.text();
  const std::vector<std::string> sites = reader.read_texts(run, "residual/sites");
  const auto found = std::find(sites.begin(), sites.end(), site);
  if (found == sites.end())
    not_recorded(reader, run, hook,
                 fmt::format("its sites go from {} to {}", sites.empty() ? "none" : sites.front(),
                             sites.empty() ? "none" : sites.back()));
  return part(reader, run, "residual/stream", found - sites.begin());
}

// Rows of the first axis of `path` that are in the file; all of what is no axis of layers.
std::int64_t whole_rows(const CaptureReader& reader, const std::string& run,
                        const std::string& path) {
  const std::vector<std::int64_t> dims = reader.dims(run, path);
  const std::int64_t all = dims.empty() ? 1 : dims.front();
  if (is_run_done(reader, run)) return all;
  const int whole = reader.whole_layers(run);
  const auto leading = [&](const std::vector<int>& layers) {
    const auto end = std::find_if(layers.begin(), layers.end(),
                                  [&](int layer) { return layer < 0 || layer >= whole; });
    return end - layers.begin();
  };
  const std::string group = path.substr(0, path.find('/')), leaf = path.substr(group.size() + 1);
  if (path.ends_with("/layers") || leaf.starts_with("pattern_")) return all;
  if (leaf == "pattern") return leading(reader.read_i32(run, "attention/pattern_layers"));
  if (group == "attention") return leading(reader.read_i32(run, "attention/layers"));
  if (group == "stats" || group == "taps")
    return leading(
        reader.read_i32(run, path.substr(0, path.find('/', group.size() + 1)) + "/layers"));
  if (group == "residual") {
    if (leaf == "prenorm") return std::min<std::int64_t>(all, std::int64_t{2} * whole);
    if (leaf.starts_with("abs_mean")) return whole == 0 ? 0 : whole + 1;
    if (leaf != "stream" && leaf != "window") return 0;  // after the last block
    std::vector<int> layers;
    for (const std::string& site : reader.read_texts(run, "residual/sites"))
      layers.push_back(SiteName::parse(site).layer);
    return leading(layers);
  }
  return group == "logits" || group == "compare" ? 0 : all;
}

// A layer that was never recorded does not come out as zeros.
void leave_out_missing(const CaptureReader& reader, const std::string& run, const std::string& hook,
                       RecordedArray& array) {
  if (array.path.find('/') == std::string::npos) return;
  const std::int64_t whole = whole_rows(reader, run, array.path);
  const std::int64_t at = array.fixed.empty() ? 0 : array.fixed.front();
  if (at >= whole && (!array.fixed.empty() || array.dims.empty() || array.dims.front() > 0))
    not_recorded(reader, run, hook,
                 fmt::format("the recording is unfinished, {} of {} layers are whole",
                             reader.whole_layers(run), reader.model(run).n_layers));
  if (!array.fixed.empty() || array.dims.empty()) return;
  array.n_missing = array.dims.front() - whole;
  array.dims.front() = whole;
}

// Index box [start, start + count) of the part of the array behind its fixed indices, as large as
// fits `limit` elements, beginning at element `at` in C order; whole rows of the inner dimensions.
struct Box {
  std::vector<std::int64_t> start, count;
  std::int64_t n = 0;
};
Box box_at(const RecordedArray& array, std::int64_t at, std::int64_t limit) {
  Box box;
  const std::size_t rank = array.dims.size();
  box.start.assign(rank, 0);
  box.count.assign(rank, 1);
  std::int64_t rest = at;
  std::int64_t inner = product(array.dims);
  bool is_cut = false;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    inner /= array.dims[axis];
    box.start[axis] = rest / inner;
    rest %= inner;
    if (is_cut) {
      box.count[axis] = array.dims[axis];
    } else if (rest == 0 && (inner <= limit || axis + 1 == rank)) {
      // Everything further in is taken whole from here on.
      box.count[axis] =
          std::clamp<std::int64_t>(limit / inner, 1, array.dims[axis] - box.start[axis]);
      is_cut = true;
    }
  }
  box.n = product(box.count);
  box.start.insert(box.start.begin(), array.fixed.begin(), array.fixed.end());
  box.count.insert(box.count.begin(), array.fixed.size(), 1);
  return box;
}

template <typename T>
void add(const std::vector<T>& values, ArraySummary& summary) {
  for (const T value : values) {
    const auto x = static_cast<double>(value);
    if (std::isnan(x)) {
      ++summary.n_nan;
    } else if (std::isinf(x)) {
      ++summary.n_inf;
    } else {
      summary.sum += x;
      summary.min = std::min(summary.min, x);
      summary.max = std::max(summary.max, x);
    }
  }
}

template <typename T>
void hand_over(const std::vector<T>& values, ArraySummary& summary,
               const std::function<void(const char*, std::int64_t)>& take) {
  add(values, summary);
  take(reinterpret_cast<const char*>(values.data()),
       static_cast<std::int64_t>(values.size() * sizeof(T)));
}

}  // namespace

std::int64_t RecordedArray::n_elements() const { return product(dims); }

RecordedArray find_array(const CaptureReader& reader, const std::string& run,
                         const std::string& hook) {
  RecordedArray array;
  const SiteName name = SiteName::parse(hook);
  const std::string tap = fmt::format("taps/{}/", name.hook);
  if (hook.find('/') != std::string::npos) {
    if (!reader.has(run, hook) || !reader.is_dataset(run, hook))
      not_recorded(reader, run, hook, "sinkscope dump RUN.h5 --list names what is");
    array = whole(reader, run, hook);
  } else if (name.hook.starts_with("hook_resid_") && !reader.has(run, tap + "values")) {
    array = at_site(reader, run, hook, name);
  } else if (name.hook == "attn.hook_pattern" && reader.has(run, "attention/pattern")) {
    array =
        at_layer(reader, run, hook, "attention/pattern", "attention/pattern_layers", name.layer);
  } else if (reader.has(run, tap + "values")) {
    array = at_layer(reader, run, hook, tap + "values", tap + "layers", name.layer);
  } else if (name.hook == "ln_final.hook_out" && reader.has(run, "residual/final_norm")) {
    array = whole(reader, run, "residual/final_norm");
  } else {
    not_recorded(reader, run, hook, "sinkscope dump RUN.h5 --list names what is");
  }
  if (array.type == ElementType::text)
    throw Error(ErrorKind::invalid_argument,
                fmt::format("{}: {}/{}: expected numbers, found text", reader.path(), run, hook));
  leave_out_missing(reader, run, hook, array);
  return array;
}

std::vector<std::string> array_names(const CaptureReader& reader, const std::string& run) {
  std::vector<std::string> names;
  if (reader.has(run, "residual/stream")) names = reader.read_texts(run, "residual/sites");
  if (reader.has(run, "residual/final_norm")) names.emplace_back("ln_final.hook_out");
  if (reader.has(run, "attention/pattern"))
    for (const int layer : reader.read_i32(run, "attention/pattern_layers"))
      if (layer >= 0) names.push_back(SiteName{"attn.hook_pattern", layer}.text());
  if (reader.has(run, "taps"))
    for (const std::string& hook : reader.children(run, "taps"))
      for (const int layer : reader.read_i32(run, fmt::format("taps/{}/layers", hook)))
        names.push_back(SiteName{hook, layer}.text());
  for (std::string& path : dataset_paths(reader, run))
    if (reader.type(run, path) != ElementType::text) names.push_back(std::move(path));
  return names;
}

ArraySummary stream_array(const CaptureReader& reader, const std::string& run,
                          const RecordedArray& array, std::int64_t block_bytes,
                          const std::function<void(const char*, std::int64_t)>& take) {
  ArraySummary summary;
  summary.min = std::numeric_limits<double>::infinity();
  summary.max = -summary.min;
  // i32 goes through double, which holds it exactly: count the larger of the two.
  const std::int64_t limit = std::max<std::int64_t>(1, block_bytes / 16);
  const std::int64_t n = array.n_elements();
  for (std::int64_t at = 0; at < n;) {
    const Box box = box_at(array, at, limit);
    if (array.type == ElementType::f32) {
      hand_over(box.start.empty() ? reader.read_f32(run, array.path)
                                  : reader.read_f32(run, array.path, box.start, box.count),
                summary, take);
    } else {
      const std::vector<double> values =
          box.start.empty() ? reader.read_f64(run, array.path)
                            : reader.read_f64(run, array.path, box.start, box.count);
      if (array.type == ElementType::f64) {
        hand_over(values, summary, take);
      } else if (array.type == ElementType::i32) {
        hand_over(std::vector<std::int32_t>(values.begin(), values.end()), summary, take);
      } else {
        hand_over(std::vector<std::int64_t>(values.begin(), values.end()), summary, take);
      }
    }
    at += box.n;
  }
  if (summary.min > summary.max) summary.min = summary.max = std::nan("");
  return summary;
}

}  // namespace sinkscope
