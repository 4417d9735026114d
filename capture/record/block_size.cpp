// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/record/block_size.h"

#include <algorithm>
#include <cmath>

#include "capture/model/read_pieces.h"

namespace sinkscope {
namespace {

bool is_expert_role(Role role) {
  return role >= Role::expert_gate && role <= Role::expert_down_bias;
}

const TensorInfo* tensor_of(const ModelFiles& model, Role role, int layer) {
  const Checkpoint& checkpoint = model.checkpoint();
  const int index = checkpoint.find(model.tensor_name(role, layer));
  return index < 0 ? nullptr : &checkpoint.tensors()[static_cast<std::size_t>(index)];
}

double stored_bytes_per_value(const ModelFiles& model, Role role, int layer) {
  const TensorInfo* tensor = tensor_of(model, role, layer);
  if (tensor == nullptr) return 4;
  return static_cast<double>(tensor->n_bytes) /
         static_cast<double>(std::max<std::int64_t>(tensor->n_elements(), 1));
}

// Gate and up are read together.
std::int64_t read_at_once(const ModelFiles& model, Role role, int layer, std::int64_t values) {
  const TensorInfo* tensor = tensor_of(model, role, layer);
  if (tensor != nullptr && is_read_whole(model.stored_as(role, layer).packing))
    return tensor->n_elements();
  return std::min<std::int64_t>(2 * values, kPieceBytes / 4);
}

BlockSize block_size(const ModelFiles& model, int layer) {
  BlockSize size;
  const int n_experts = std::max(1, model.spec().moe.n_experts);
  for (int r = 0; r <= static_cast<int>(Role::last); ++r) {
    const auto role = static_cast<Role>(r);
    if (!is_layer_role(role) || !model.has(role, layer)) continue;
    if (role == Role::ngram_table) continue;  // only the rows of a prompt are read
    const std::int64_t values = model.rows(role, layer) * model.cols(role, layer);
    const auto stored = static_cast<std::int64_t>(static_cast<double>(values) *
                                                  stored_bytes_per_value(model, role, layer));
    if (is_expert_role(role)) {
      size.expert_values += values / n_experts;
      size.expert_stored += stored / n_experts;
    } else {
      size.values += values;
      size.stored += stored;
      size.largest_role = std::max(size.largest_role, values);
      size.read_at_once = std::max(size.read_at_once, read_at_once(model, role, layer, values));
    }
  }
  return size;
}

}  // namespace

std::vector<BlockSize> block_sizes(const ModelFiles& model) {
  std::vector<BlockSize> sizes;
  for (int layer = 0; layer < model.spec().n_layers; ++layer)
    sizes.push_back(block_size(model, layer));
  return sizes;
}

std::int64_t item_bytes(RunDtype dtype) { return dtype == RunDtype::float32 ? 4 : 2; }

WeightUse weight_use(const ModelFiles& model, std::int64_t budget, RunDtype dtype,
                     std::int64_t n_tokens) {
  const double reached = reached_experts(model.spec().moe, n_tokens);
  const auto of_reached = [reached](std::int64_t one) {
    return static_cast<std::int64_t>(reached * static_cast<double>(one));
  };
  WeightUse use;
  std::int64_t before = 0;
  for (const BlockSize& size : block_sizes(model)) {
    use.blocks.push_back({size.values, size.stored, of_reached(size.expert_values),
                          of_reached(size.expert_stored), 0, 0});
    const BlockUse& block = use.blocks.back();
    use.all += block.values + block.expert_values;
    use.two = std::max(use.two, before + block.values);
    before = block.values;
    use.most_experts = std::max(use.most_experts, block.expert_values);
    use.largest_role = std::max(use.largest_role, size.largest_role);
    use.read_at_once = std::max({use.read_at_once, size.read_at_once, size.expert_values});
  }
  const std::int64_t item = item_bytes(dtype);
  use.kept_bytes = item * use.all <= budget
                       ? budget
                       : std::max<std::int64_t>(0, budget - item * (use.two + use.most_experts));
  std::int64_t room = use.kept_bytes / item;
  for (BlockUse& block : use.blocks) {
    if (block.values > room) continue;
    block.kept = block.values;
    block.kept_experts = std::min(block.expert_values, room - block.values);
    room -= block.kept + block.kept_experts;
  }
  return use;
}

std::int64_t head_stored_bytes(const ModelFiles& model) {
  const Role role = model.has(Role::unembed, kNoLayer) ? Role::unembed : Role::embed;
  return static_cast<std::int64_t>(
      static_cast<double>(model.rows(role, kNoLayer) * model.cols(role, kNoLayer)) *
      stored_bytes_per_value(model, role, kNoLayer));
}

double reached_experts(const MoeSpec& moe, std::int64_t n_tokens) {
  if (moe.n_experts == 0) return 0;
  const double E = moe.n_experts;
  return E * (1 - std::pow(1 - moe.n_used / E, static_cast<double>(n_tokens)));
}

}  // namespace sinkscope
