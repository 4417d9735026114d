// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/tensor_search.h"

#include <fmt/format.h>

#include <algorithm>

namespace sinkscope {
namespace {

// Where a language model sits inside a model for pictures or sound.
constexpr const char* kWrappers[] = {"model.language_model.", "language_model.model.",
                                     "language_model.", "model.llm."};

bool is_of(const TensorName& line, int layer) {
  return line.only_layer == kNoLayer || line.only_layer == layer;
}

}  // namespace

TensorSearch::TensorSearch(const Checkpoint& checkpoint, const Family& family, Inside inside)
    : checkpoint_(checkpoint), family_(family), inside_(inside) {
  if (inside == Inside::wrapper) prefixes_.assign(std::begin(kWrappers), std::end(kWrappers));
  // A base model that was saved alone lacks the outer part of the prefix, or all of it.
  for (std::string_view rest = family.prefix; !rest.empty(); rest.remove_prefix(rest.find('.') + 1))
    prefixes_.emplace_back(rest);
  prefixes_.emplace_back();
}

std::string TensorSearch::name(const TensorName& line, int layer, int expert) const {
  std::string name = line.name;
  if (const auto at = name.find("{}"); at != std::string::npos && expert >= 0)
    name.replace(
        at, 2,
        line.packing == Packing::qkv_each ? std::string(1, "qkv"[expert]) : std::to_string(expert));
  for (const auto& [word, number] :
       {std::pair{"{layer}", layer}, std::pair{"{layer-1}", layer - 1}})
    if (const auto at = name.find(word); at != std::string::npos)
      return name.replace(at, std::string_view(word).size(), std::to_string(number));
  if (layer == kNoLayer || family_.is_complete) return name;
  return fmt::format("{}{}.{}", family_.layers, layer, name);
}

int TensorSearch::find(const TensorName& line, int layer, int expert) const {
  const std::string bare = name(line, layer, expert);
  for (const std::string& prefix : prefixes_)
    if (const int tensor = checkpoint_.find(prefix + bare); tensor >= 0) return tensor;
  return -1;
}

const TensorName* TensorSearch::spelling(Role role, int layer) const {
  for (const TensorName& line : names_of(family_, role))
    if (is_of(line, layer) && find(line, layer) >= 0) return &line;
  return nullptr;
}

const TensorName* TensorSearch::usual_spelling(Role role, int layer) const {
  for (const TensorName& line : names_of(family_, role))
    if (is_of(line, layer)) return &line;
  return nullptr;
}

std::optional<LayerName> TensorSearch::block(std::string_view name) const {
  if (family_.is_complete) return std::nullopt;
  auto block = split_layer_name(name, family_.layers);
  if (!block || std::find(prefixes_.begin(), prefixes_.end(), block->prefix) == prefixes_.end())
    return std::nullopt;
  return block;
}

bool TensorSearch::is_outside(std::string_view name) const {
  return inside_ == Inside::wrapper && !block(name) &&
         std::none_of(std::begin(kWrappers), std::end(kWrappers),
                      [name](const char* prefix) { return name.starts_with(prefix); });
}

}  // namespace sinkscope
