// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/compare/array_axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "core/capture_schema.h"
#include "core/error.h"
#include "core/site_name.h"

namespace sinkscope {
namespace {

// What the indices of one side's axis stand for.
struct AxisLabels {
  std::vector<int> values;
  std::vector<std::string> texts;
};

// The folder `levels` names below the run: "stats/ln1.hook_out" of 2.
std::string first_names(const std::string& path, int levels) {
  std::size_t end = 0;
  for (int level = 0; level < levels && end != std::string::npos; ++level)
    end = path.find('/', level == 0 ? 0 : end + 1);
  return path.substr(0, end);
}

std::string list_of(const std::string& path, std::string_view symbol) {
  if (symbol == "A") return "attention/layers";
  if (symbol == "L_p") return "attention/pattern_layers";
  if (symbol == "Q") return "attention/pattern_heads";
  if (symbol == "m") return "residual/block_layers";
  if (symbol == "R") return "attention/pattern_rows";
  if (symbol == "N") return first_names(path, 2) + "/layers";
  return "";
}

AxisLabels labels_of(const ComparedRun& side, const std::string& path, std::string_view symbol,
                     std::int64_t size) {
  AxisLabels labels;
  const std::string list = list_of(path, symbol);
  if (symbol == "S") {
    labels.texts = side.reader->read_texts(side.run, "residual/sites");
    for (const std::string& site : labels.texts)
      labels.values.push_back(SiteName::parse(site).layer);
  } else if (!list.empty()) {
    labels.values = side.reader->read_i32(side.run, list);
  } else {
    labels.values.resize(static_cast<std::size_t>(size));
    std::iota(labels.values.begin(), labels.values.end(), 0);
  }
  if (static_cast<std::int64_t>(labels.values.size()) != size)
    throw Error(ErrorKind::corrupt, fmt::format("{}: {}/{}: expected {} entries along {}, found {}",
                                                side.reader->path(), side.run, path,
                                                labels.values.size(), symbol, size));
  return labels;
}

std::string axis_name(const std::string& path, std::string_view symbol, std::size_t axis,
                      std::size_t rank) {
  static const std::map<std::string_view, std::string> kNames = {
      {"A", "layer"},    {"N", "layer"},    {"L_p", "layer"},      {"S", "site"},  {"L+1", "state"},
      {"H", "head"},     {"Q", "head"},     {"H_v", "value head"}, {"R", "query"}, {"D", "dim"},
      {"D_r", "dim"},    {"N_r", "stream"}, {"D_s", "dim"},        {"C", "dim"},   {"k", "rank"},
      {"V", "token id"}, {"T-1", "token"},  {"", "index"}};
  const bool is_last = axis + 1 == rank;
  if (symbol == "W" && path.starts_with("residual/")) return "token";
  if (symbol == "W") return is_last ? "key" : "query";
  if (symbol == "B") return is_last ? "key bin" : "query bin";
  if (symbol == "T") {
    if (!path.starts_with("attention/")) return "token";
    const bool is_key = path.ends_with("/key_mass") || path.ends_with("/visible") ||
                        path.ends_with("/value_norm") || path.ends_with("/pattern");
    return is_key ? "key" : "query";
  }
  const auto found = kNames.find(symbol);
  return found == kNames.end() ? "index" : found->second;
}

// taps/*/values is [N, …]: what the rest is follows from how much there is of it.
std::string tap_axis_name(std::size_t axis, std::size_t rank) {
  static const std::vector<std::string> kNames = {"dim", "token", "head"};
  if (rank == 2) return "token";
  const std::size_t from_end = rank - 1 - axis;
  return from_end < kNames.size() ? kNames[from_end] : "index";
}

CommonAxis match(const AxisLabels& a, const AxisLabels& b) {
  CommonAxis axis;
  std::map<std::pair<int, std::string>, int> place;
  const auto key = [](const AxisLabels& labels, std::size_t i) {
    return std::pair(labels.values[i], labels.texts.empty() ? std::string() : labels.texts[i]);
  };
  for (std::size_t i = 0; i < b.values.size(); ++i) place.emplace(key(b, i), static_cast<int>(i));
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    const auto found = place.find(key(a, i));
    if (found == place.end()) continue;
    axis.a.push_back(static_cast<int>(i));
    axis.b.push_back(found->second);
    axis.value.push_back(a.values[i]);
    if (!a.texts.empty()) axis.texts.push_back(a.texts[i]);
  }
  axis.is_whole = axis.size() == a.values.size() && axis.size() == b.values.size();
  return axis;
}

void leave_out_from(int layers_end, CommonAxis& axis) {
  if (layers_end == kAllLayers) return;  // what comes after the last block (−1) is there, too
  CommonAxis kept;
  kept.is_whole = axis.is_whole;
  for (std::size_t i = 0; i < axis.size(); ++i) {
    const bool is_there = axis.name == "state" ? axis.value[i] <= layers_end
                                               : axis.value[i] >= 0 && axis.value[i] < layers_end;
    if (!is_there) continue;
    kept.a.push_back(axis.a[i]);
    kept.b.push_back(axis.b[i]);
    kept.value.push_back(axis.value[i]);
    if (!axis.texts.empty()) kept.texts.push_back(axis.texts[i]);
  }
  kept.name = axis.name;
  axis = std::move(kept);
}

}  // namespace

std::vector<CommonAxis> common_axes(const ComparedRun& a, const ComparedRun& b,
                                    const std::string& path, int layers_end) {
  const std::vector<std::int64_t> dims_a = a.reader->dims(a.run, path),
                                  dims_b = b.reader->dims(b.run, path);
  const DatasetRule* rule = find_rule(path);
  if (rule == nullptr || dims_a.size() != dims_b.size()) return {};
  const bool is_tap = path.starts_with("taps/");
  std::vector<std::string_view> symbols = split(rule->shape, ',');
  for (auto symbol = symbols.begin(); symbol != symbols.end();) {
    const bool is_left_out = is_optional(*symbol) && symbols.size() > dims_a.size();
    if (is_optional(*symbol)) symbol->remove_suffix(1);
    symbol = is_left_out ? symbols.erase(symbol) : symbol + 1;
  }
  symbols.resize(dims_a.size());
  std::vector<CommonAxis> axes;
  for (std::size_t i = 0; i < dims_a.size(); ++i) {
    const std::string_view symbol = is_tap && i > 0 ? "" : symbols[i];
    CommonAxis axis =
        match(labels_of(a, path, symbol, dims_a[i]), labels_of(b, path, symbol, dims_b[i]));
    axis.name = is_tap && i > 0 ? tap_axis_name(i, dims_a.size())
                                : axis_name(path, symbol, i, dims_a.size());
    const bool is_layer =
        i == 0 && (axis.name == "layer" || axis.name == "site" || axis.name == "state");
    if (is_layer && !path.starts_with("norm/")) leave_out_from(layers_end, axis);
    axis.is_layer = is_layer;
    axes.push_back(std::move(axis));
  }
  return axes;
}

}  // namespace sinkscope
