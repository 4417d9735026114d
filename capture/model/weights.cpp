// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/model/weights.h"

#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include "capture/record/background.h"

namespace sinkscope {
namespace {

// One part of a fused matrix or vector: a role's rows, read into the next rows of `into`.
void fill(const ModelFiles& model, Role role, int layer, float*& into) {
  const std::int64_t rows = model.rows(role, layer), cols = model.cols(role, layer);
  model.read_rows(role, layer, 0, rows, into);
  into += rows * cols;
}

class LayerReader {
 public:
  LayerReader(const ModelFiles& model, int layer, at::Device device, at::ScalarType dtype)
      : model_(model), layer_(layer), device_(device), dtype_(dtype) {}

  at::Tensor matrix(std::initializer_list<Role> roles) {
    std::int64_t rows = 0, cols = 0;
    for (Role role : roles) {
      rows += model_.rows(role, layer_);
      cols = model_.cols(role, layer_);
    }
    at::Tensor host = at::empty({rows, cols}, at::kFloat);
    float* into = host.data_ptr<float>();
    for (Role role : roles) fill(model_, role, layer_, into);
    return place(host, dtype_);
  }

  // Biases: undefined when no role of the list is filled; zeros where one is missing.
  at::Tensor vector(std::initializer_list<std::pair<Role, Role>> bias_and_matrix) {
    std::int64_t n = 0;
    bool any = false;
    for (const auto& [bias, matrix] : bias_and_matrix) {
      n += model_.rows(matrix, layer_);
      any = any || model_.has(bias, layer_);
    }
    if (!any) return {};
    at::Tensor host = at::zeros({n}, at::kFloat);
    float* into = host.data_ptr<float>();
    for (const auto& [bias, matrix] : bias_and_matrix) {
      if (model_.has(bias, layer_)) model_.read_rows(bias, layer_, 0, 1, into);
      into += model_.rows(matrix, layer_);
    }
    return place(host, dtype_);
  }

  at::Tensor gain(Role role) {
    if (!model_.has(role, layer_)) return {};
    const std::vector<float> values = model_.norm_gain(role, layer_).effective;
    at::Tensor host = at::empty({static_cast<std::int64_t>(values.size())}, at::kFloat);
    std::copy(values.begin(), values.end(), host.data_ptr<float>());
    return place(host, at::kFloat);
  }

  at::Tensor plain(Role role) {
    if (!model_.has(role, layer_)) return {};
    return place(at::tensor(model_.read_vector(role, layer_), at::kFloat), at::kFloat);
  }

  std::int64_t n_bytes() const { return n_bytes_; }

 private:
  at::Tensor place(const at::Tensor& host, at::ScalarType dtype) {
    n_bytes_ += host.numel() * static_cast<std::int64_t>(at::elementSize(dtype));
    return host.to(device_, dtype);
  }

  const ModelFiles& model_;
  int layer_;
  at::Device device_;
  at::ScalarType dtype_;
  std::int64_t n_bytes_ = 0;
};

}  // namespace

WeightStore::WeightStore(const ModelFiles& model, at::Device device, at::ScalarType dtype,
                         std::int64_t keep_bytes)
    : model_(model), device_(device), dtype_(dtype), keep_bytes_(keep_bytes) {}

WeightStore::~WeightStore() = default;

void WeightStore::prefetch(int layer) {
  if (layer < 0 || layer >= model_.spec().n_layers) return;
  if (kept_.count(layer) != 0 || pending_.count(layer) != 0) return;
  pending_[layer] = std::async(std::launch::async, [this, layer] {
    run_in_background();
    return read(layer);
  });
}

std::shared_ptr<const LayerWeights> WeightStore::layer(int layer) {
  std::shared_ptr<const LayerWeights> weights;
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
  prefetch(layer + 1);
  return weights;
}

std::shared_ptr<const LayerWeights> WeightStore::read(int layer) {
  const c10::InferenceMode inference;
  LayerReader from(model_, layer, device_, dtype_);
  auto w = std::make_shared<LayerWeights>();
  w->ln1 = from.gain(Role::ln1);
  w->ln2 = from.gain(Role::ln2);
  w->ln1_pre = from.plain(Role::ln1_pre);
  w->ln2_pre = from.plain(Role::ln2_pre);
  w->q_norm = from.gain(Role::q_norm);
  w->k_norm = from.gain(Role::k_norm);
  w->qkv = from.matrix({Role::q, Role::k, Role::v});
  w->qkv_bias =
      from.vector({{Role::q_bias, Role::q}, {Role::k_bias, Role::k}, {Role::v_bias, Role::v}});
  w->o = from.matrix({Role::o});
  w->o_bias = from.vector({{Role::o_bias, Role::o}});
  w->gate_up = from.matrix({Role::gate, Role::up});
  w->gate_up_bias = from.vector({{Role::gate_bias, Role::gate}, {Role::up_bias, Role::up}});
  w->down = from.matrix({Role::down});
  w->down_bias = from.vector({{Role::down_bias, Role::down}});
  w->n_bytes = from.n_bytes();
  return w;
}

at::Tensor read_matrix(const ModelFiles& model, Role role, int layer, std::int64_t begin,
                       std::int64_t end, at::Device device, at::ScalarType dtype) {
  at::Tensor host = at::empty({end - begin, model.cols(role, layer)}, at::kFloat);
  model.read_rows(role, layer, begin, end, host.data_ptr<float>());
  return host.to(device, dtype);
}

at::Tensor embed(const ModelFiles& model, const std::vector<int>& ids, at::Device device,
                 at::ScalarType dtype) {
  const std::int64_t d = model.spec().d_model;
  at::Tensor host = at::empty({1, static_cast<std::int64_t>(ids.size()), d}, at::kFloat);
  float* rows = host.data_ptr<float>();
  std::map<int, std::size_t> first_use;  // a repeated token is read once
  for (std::size_t t = 0; t < ids.size(); ++t) {
    float* row = rows + static_cast<std::int64_t>(t) * d;
    const auto [seen, is_new] = first_use.emplace(ids[t], t);
    if (is_new) {
      model.read_rows(Role::embed, kNoLayer, ids[t], ids[t] + 1, row);
    } else {
      std::copy_n(rows + static_cast<std::int64_t>(seen->second) * d, d, row);
    }
  }
  return host.to(device, dtype);
}

}  // namespace sinkscope
