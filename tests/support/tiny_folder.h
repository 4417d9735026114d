// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sinkscope::test {

struct TinyTensor {
  std::vector<std::int64_t> shape;
  std::vector<float> values;
  bool operator==(const TinyTensor&) const = default;
};

// A small model as a Hugging Face folder would hold it, before it is written: tests bend the config
// and the tensors as they need.
struct TinyFolder {
  nlohmann::json config;
  std::map<std::string, TinyTensor> tensors;  // by name, as F32

  // A tensor of distinct values.
  TinyFolder& add(const std::string& name, const std::vector<std::int64_t>& shape);
  TinyFolder& remove(const std::string& name);

  // Writes config.json and model.safetensors, or `n_shards` shards with their index, into `folder`
  // and returns it.
  std::string write(const std::string& folder, int n_shards = 1) const;
};

// `n_layers` layers, hidden 8, 4 heads of 6 over 2 kv heads, MLP 10, vocabulary 32: no two sizes
// agree, and head_dim is not hidden / heads. `family`: "llama", "mistral", "qwen2" (biases),
// "qwen3" (qk norm); another name gets the tensors of llama.
TinyFolder tiny_folder(const std::string& family = "llama", int n_layers = 2);

// Shard k of n as Hugging Face names it: "model-00001-of-00002.safetensors".
std::string shard_name(int number, int total);

}  // namespace sinkscope::test
