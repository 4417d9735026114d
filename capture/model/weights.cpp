// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/model/weights.h"

#include <chrono>

#include "capture/model/read_layer.h"
#include "capture/record/background.h"

namespace sinkscope {

WeightStore::WeightStore(const ModelFiles& model, at::Device device, at::ScalarType dtype,
                         std::int64_t keep_bytes)
    : model_(model), device_(device), dtype_(dtype), keep_bytes_(keep_bytes) {}

WeightStore::~WeightStore() = default;

void WeightStore::prefetch(int layer) {
  if (layer < 0 || layer >= model_.spec().n_layers) return;
  if (kept_.count(layer) != 0 || pending_.count(layer) != 0) return;
  pending_[layer] = std::async(std::launch::async, [this, layer] {
    run_in_background();
    return read_layer(model_, layer, device_, dtype_);
  });
}

std::shared_ptr<const LayerWeights> WeightStore::layer(int layer) {
  std::shared_ptr<const LayerWeights> weights;
  settle_experts();
  if (const auto kept = kept_.find(layer); kept != kept_.end()) {
    weights = kept->second;
  } else {
    prefetch(layer);
    auto node = pending_.extract(layer);
    const auto begin = std::chrono::steady_clock::now();
    weights = node.mapped().get();
    seconds_waited_ +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (kept_bytes_ + weights->n_bytes <= keep_bytes_) {
      kept_[layer] = weights;
      kept_bytes_ += weights->n_bytes;
    }
  }
  if (weights->experts && kept_.count(layer) != 0) {
    kept_bytes_ -= weights->experts->n_bytes();
    in_use_ = layer;
  }
  prefetch(layer + 1);
  return weights;
}

void WeightStore::settle_experts() {
  if (in_use_ < 0) return;
  ExpertSource& experts = *kept_.at(in_use_)->experts;
  experts.shrink(keep_bytes_ - kept_bytes_);
  kept_bytes_ += experts.n_bytes();
  in_use_ = -1;
}

}  // namespace sinkscope
