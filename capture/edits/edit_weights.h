// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/ATen.h>

#include <memory>
#include <optional>
#include <string>

namespace sinkscope {

class SafetensorsCheckpoint;

// A safetensors file with weights for edits: blocks.N.ln1.gate_down, blocks.N.attn.gate, …
class EditWeights {
 public:
  // Throws Error: not_found, corrupt.
  EditWeights(const std::string& path, at::Device device);
  ~EditWeights();
  // Undefined when the file has no such tensor. Throws Error{invalid_argument} naming both shapes
  // when it has another shape; a −1 in `shape` stands for any size.
  at::Tensor find(const std::string& name, const std::vector<std::int64_t>& shape) const;
  // The same; Error{not_found} when the tensor is missing.
  at::Tensor read(const std::string& name, const std::vector<std::int64_t>& shape) const;

 private:
  std::string path_;
  at::Device device_;
  std::unique_ptr<SafetensorsCheckpoint> file_;
};

// "blocks.3.ln1", "ln_final": where an edit's weights for a norm are named.
std::string norm_name(const char* role, int layer);

}  // namespace sinkscope
