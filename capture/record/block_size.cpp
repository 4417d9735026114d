// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/record/block_size.h"

#include <algorithm>
#include <cmath>

namespace sinkscope {
namespace {

bool is_expert_role(Role role) {
  return role >= Role::expert_gate && role <= Role::expert_down_bias;
}

double stored_bytes_per_value(const ModelFiles& model, Role role, int layer) {
  const Checkpoint& checkpoint = model.checkpoint();
  const int index = checkpoint.find(model.tensor_name(role, layer));
  if (index < 0) return 4;
  const TensorInfo& tensor = checkpoint.tensors()[static_cast<std::size_t>(index)];
  return static_cast<double>(tensor.n_bytes) /
         static_cast<double>(std::max<std::int64_t>(tensor.n_elements(), 1));
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
