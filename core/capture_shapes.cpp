// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/capture_shapes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.h"

namespace sinkscope {
namespace {

// "stats/hook_resid_pre/token/rms" → "stats/hook_resid_pre".
std::string owner_of(const std::string& path) {
  return path.substr(0, path.find('/', path.find('/') + 1));
}

}  // namespace

RunShapes::RunShapes(const ModelFacts& model, DimsOf dims_of, const std::string& where)
    : dims_of_(std::move(dims_of)),
      sizes_{model.n_layers, model.n_heads, model.vocab_size, 0},
      symbols_{{"H", model.n_heads},
               {"H_v", model.n_kv_heads},
               {"D", model.d_model},
               {"D_r", model.state_width()},
               {"N_r", model.n_streams},
               {"L+1", std::int64_t{model.n_layers} + 1},
               {"2L", std::int64_t{2} * model.n_layers}} {
  const auto seq_len = axis("input/token_ids", 1, 0);
  if (!seq_len || *seq_len < 1) {
    throw Error(ErrorKind::corrupt, where + "/input/token_ids: expected a list of token ids");
  }
  sizes_.seq_len = static_cast<int>(std::min<std::int64_t>(*seq_len, 1 << 30));
  symbols_["T"] = *seq_len;
  symbols_["T-1"] = std::max<std::int64_t>(*seq_len - 1, 0);
  symbols_["W"] = symbols_["B"] = std::min<std::int64_t>(*seq_len, 64);
  check_layers(where);
}

// Arrays that every block has a part of: 2L+1 sites, or L+1 where blocks are parallel.
void RunShapes::check_layers(const std::string& where) const {
  const std::int64_t n = sizes_.n_layers;
  const auto refuse = [&](const char* path, std::int64_t found) {
    throw Error(ErrorKind::corrupt,
                fmt::format("{}: its model has {} layers, which does not fit the {} rows of {}",
                            where, n, found, path));
  };
  const Dims sites = dims_of_("residual/sites"), means = dims_of_("residual/abs_mean");
  if (!sites.empty() && sites[0] != 2 * n + 1 && sites[0] != n + 1)
    refuse("residual/sites", sites[0]);
  if (!means.empty() && means[0] != n + 1) refuse("residual/abs_mean", means[0]);
}

std::optional<std::int64_t> RunShapes::axis(const std::string& path, std::size_t rank,
                                            std::size_t i) const {
  const Dims dims = dims_of_(path);
  if (dims.size() != rank) return std::nullopt;
  return dims[i];
}

// A size is taken from the list or array that defines it; that one itself may have any.
std::optional<std::int64_t> RunShapes::size_of(const std::string& symbol, const std::string& path) {
  struct Definition {
    const char* symbol;
    std::string path;
    std::size_t rank, axis;
  };
  if (const auto known = symbols_.find(symbol); known != symbols_.end()) return known->second;
  const std::string owner = owner_of(path);
  const Definition definitions[] = {
      {"A", "attention/layers", 1, 0},        {"L_p", "attention/pattern_layers", 1, 0},
      {"Q", "attention/pattern_heads", 1, 0}, {"R", "attention/pattern_rows", 1, 0},
      {"S", "residual/sites", 1, 0},          {"m", "residual/block_layers", 1, 0},
      {"k", "logits/top_ids", 2, 1},          {"N", owner + "/layers", 1, 0},
      {"C", owner + "/gain", 2, 1},           {"D_s", owner + "/dim_rest/count", 2, 1},
  };
  for (const Definition& definition : definitions) {
    if (symbol != definition.symbol) continue;
    if (path == definition.path) return std::nullopt;
    const bool is_local = definition.path.starts_with(owner + "/");
    const std::string key = is_local ? owner + ":" + symbol : symbol;
    if (const auto known = symbols_.find(key); known != symbols_.end()) return known->second;
    // Without the definition nothing can have that size: -1 matches no dimension.
    const std::int64_t size = axis(definition.path, definition.rank, definition.axis).value_or(-1);
    return symbols_[key] = size;
  }
  return std::nullopt;
}

void RunShapes::check(const std::string& path, const Dims& found, const std::string& where) {
  const DatasetRule* rule = find_rule(path);
  if (rule == nullptr) return;
  auto parts = split(rule->shape, ',');
  const bool is_open = !parts.empty() && parts.back() == "…";
  if (is_open) parts.pop_back();
  for (auto part = parts.begin(); part != parts.end();) {
    if (!is_optional(*part)) {
      ++part;
      continue;
    }
    part->remove_suffix(1);
    part = symbols_.at(std::string(*part)) == 1 ? parts.erase(part) : part + 1;
  }
  bool is_right = is_open ? found.size() >= parts.size() : found.size() == parts.size();
  for (std::size_t i = 0; is_right && i < parts.size(); ++i) {
    const auto size = size_of(std::string(parts[i]), path);
    if (size) is_right = found[i] == *size;
  }
  if (is_right) return;
  std::vector<std::string> expected;
  for (const std::string_view part : parts) {
    const std::string symbol(part);
    const auto size = size_of(symbol, path);
    expected.push_back(size ? fmt::format("{}={}", symbol, *size) : symbol);
  }
  throw Error(ErrorKind::corrupt,
              fmt::format("{}: expected the shape [{}{}], found [{}]", where,
                          fmt::join(expected, ", "), is_open ? ", …" : "", fmt::join(found, ", ")));
}

}  // namespace sinkscope
