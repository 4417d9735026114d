// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <initializer_list>
#include <map>

#include "capture/checkpoint/model_files.h"

namespace sinkscope {

struct BlockPass;

// One expert: an MLP of its own. Rows are torch's [out, in].
struct Expert {
  at::Tensor gate_up, gate_up_bias;  // [2·d_expert, D] rows gate, then up
  at::Tensor down, down_bias;        // [D, d_expert]
};

// The experts of one block, each read from the files when a token first goes to it. For the
// engine's thread only.
class ExpertSource {
 public:
  ExpertSource(const ModelFiles& model, int layer, at::Device device, at::ScalarType dtype);
  const Expert& expert(int index);
  // Bytes of the experts that are in memory.
  std::int64_t n_bytes() const { return n_bytes_; }
  // Drops experts, highest index first, until `bytes` hold the rest; their next use reads again.
  void shrink(std::int64_t bytes);

 private:
  // The expert's rows of one role, or of gate and up together.
  at::Tensor rows(std::initializer_list<Role> roles, int index) const;

  const ModelFiles& model_;
  int layer_;
  at::Device device_;
  at::ScalarType dtype_;
  std::map<int, Expert> experts_;
  std::int64_t n_bytes_ = 0;
};

// Where each token goes. logits [T, E] before any score; weights [T, E] as used, 0 where a token
// does not go; both float32. Equal scores: the lower index first.
struct Routing {
  at::Tensor logits, weights;
};
// With `table` [T, k] its experts instead of the best ones.
Routing route(const MoeSpec& moe, const at::Tensor& logits, const at::Tensor& choice_bias,
              const at::Tensor& table = {});

// Σ_e weight_e · expert_e(n) + the shared expert; n [1, T, D], the router reads `routed` [1, T, D].
// Taps the router and the gate of the shared expert. Undefined = canceled: a request to stop is
// looked at once an expert and, of many tokens, once a chunk of them.
at::Tensor moe_block(const BlockPass& pass, const at::Tensor& n, const at::Tensor& routed);

}  // namespace sinkscope
