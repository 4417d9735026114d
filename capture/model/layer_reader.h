// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <utility>
#include <vector>

#include "capture/checkpoint/model_files.h"
#include "capture/model/ngrams.h"
#include "capture/model/norm.h"
#include "capture/model/streams.h"
#include "capture/model/weights.h"

namespace sinkscope {

// The roles of one block as tensors on the device, and the bytes that they take there. What the
// block does not have is undefined, or a norm that does not exist(). Throws Error as ModelFiles
// does.
class LayerReader {
 public:
  LayerReader(const ModelFiles& model, int layer, at::Device device, at::ScalarType dtype)
      : model_(model), layer_(layer), device_(device), dtype_(dtype) {}

  bool has(Role role) const { return model_.has(role, layer_); }

  // The rows of those roles that the layer has, in the run's type.
  at::Tensor matrix(std::initializer_list<Role> wanted);
  // Biases: undefined when no role of the list is filled; zeros where one is missing.
  at::Tensor vector(std::initializer_list<std::pair<Role, Role>> bias_and_matrix);
  Norm norm(Role role);
  // float32, whatever the run's type: [cols], or [rows, cols] where there are several rows.
  at::Tensor plain(Role role);
  // The same, always [rows, cols].
  at::Tensor plain_rows(Role role);
  // Whole numbers [rows, cols], each from 0 to end − 1; else Error{corrupt}.
  at::Tensor whole_numbers(Role role, std::int64_t end);
  // The four roles from `first` on.
  CompressorWeights compressor(Role first);
  StreamMixer mixer(Role first);
  std::shared_ptr<const Ngrams> ngrams();

  // Of all that was read.
  std::int64_t n_bytes() const { return n_bytes_; }

 private:
  // The piece-th of n parts of each role's rows, into their place in `all`.
  void fill(at::Tensor& all, const std::vector<Role>& roles, std::int64_t piece, std::int64_t n);
  // 0 where the block has no such matrix.
  std::int64_t rows_of(Role matrix) const { return has(matrix) ? model_.rows(matrix, layer_) : 0; }
  at::Tensor place(const at::Tensor& host, at::ScalarType dtype);

  const ModelFiles& model_;
  int layer_;
  at::Device device_;
  at::ScalarType dtype_;
  std::int64_t n_bytes_ = 0;
};

}  // namespace sinkscope
