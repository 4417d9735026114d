// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <vector>

#include "capture/checkpoint/model_files.h"

namespace sinkscope {

// The weights of one block on the device. Rows are torch's [out, in]. Absent parts are undefined
// tensors. q, k and v lie in one matrix, gate and up in another: one product each.
struct LayerWeights {
  at::Tensor ln1, ln2;               // [D] effective gains, float32
  at::Tensor ln1_pre, ln2_pre;       // [D] what the norms' inputs are multiplied by, float32
  at::Tensor qkv, qkv_bias;          // [(H + 2G)·d, D] rows q, then k, then v; [(H + 2G)·d]
  at::Tensor q_norm, k_norm;         // [d] effective gains, float32
  at::Tensor o, o_bias;              // [D, H·d]
  at::Tensor gate_up, gate_up_bias;  // [2·d_mlp, D] rows gate, then up
  at::Tensor down, down_bias;        // [D, d_mlp]
  std::int64_t n_bytes = 0;
};

// Hands out blocks in order and reads one block ahead on a thread of its own. Blocks are kept up to
// `keep_bytes` (for prompts that come in several groups); beyond that a block is dropped when the
// caller lets go of it.
class WeightStore {
 public:
  WeightStore(const ModelFiles& model, at::Device device, at::ScalarType dtype,
              std::int64_t keep_bytes);
  ~WeightStore();

  // Block `layer`, waiting for it if need be; starts reading `layer + 1`.
  std::shared_ptr<const LayerWeights> layer(int layer);
  // Starts reading a block without waiting for it.
  void prefetch(int layer);

  // Seconds that layer() had to wait for the reading thread.
  double seconds_waited() const { return seconds_waited_; }

 private:
  std::shared_ptr<const LayerWeights> read(int layer);

  const ModelFiles& model_;
  at::Device device_;
  at::ScalarType dtype_;
  std::int64_t keep_bytes_, kept_bytes_ = 0;
  double seconds_waited_ = 0;
  std::map<int, std::shared_ptr<const LayerWeights>> kept_;
  std::map<int, std::future<std::shared_ptr<const LayerWeights>>> pending_;
};

// Rows [begin, end) of a role as a tensor of the given type on the device.
at::Tensor read_matrix(const ModelFiles& model, Role role, int layer, std::int64_t begin,
                       std::int64_t end, at::Device device, at::ScalarType dtype);

// Embedding rows of the ids [T] -> [1, T, D]; only these rows are read.
at::Tensor embed(const ModelFiles& model, const std::vector<int>& ids, at::Device device,
                 at::ScalarType dtype);

}  // namespace sinkscope
