// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/support/tiny_folder.h"

#include <fmt/format.h>

#include <filesystem>
#include <numeric>

#include "tests/support/safetensors_bytes.h"

namespace sinkscope::test {
namespace fs = std::filesystem;

TinyFolder& TinyFolder::add(const std::string& name, const std::vector<std::int64_t>& shape) {
  const std::int64_t n =
      std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
  TinyTensor& tensor = tensors[name];
  tensor.shape = shape;
  // Distinct within and between tensors, of both signs, and exact in float32.
  const auto base = static_cast<float>(tensors.size());
  for (std::int64_t i = 0; i < n; ++i) {
    const auto step = static_cast<float>(i + 1) / 4096.0f;
    tensor.values.push_back(i % 2 == 0 ? base + step : -base - step);
  }
  return *this;
}

TinyFolder& TinyFolder::remove(const std::string& name) {
  tensors.erase(name);
  return *this;
}

std::string shard_name(int number, int total) {
  return fmt::format("model-{:05}-of-{:05}.safetensors", number, total);
}

std::string TinyFolder::write(const std::string& folder, int n_shards) const {
  const fs::path root(folder);
  write_bytes((root / "config.json").string(), config.dump(2));
  std::vector<SafetensorsBytes> shards(static_cast<std::size_t>(n_shards));
  nlohmann::json index;
  int next = 0;
  for (const auto& [name, tensor] : tensors) {
    const int shard = next++ % n_shards;
    shards[static_cast<std::size_t>(shard)].floats(name, tensor.shape, tensor.values);
    index["weight_map"][name] = shard_name(shard + 1, n_shards);
  }
  if (n_shards == 1) {
    shards.front().write((root / "model.safetensors").string());
    return folder;
  }
  for (int shard = 0; shard < n_shards; ++shard) {
    shards[static_cast<std::size_t>(shard)].write(
        (root / shard_name(shard + 1, n_shards)).string());
  }
  index["metadata"]["total_size"] = 1;  // informative only, and often wrong
  write_bytes((root / "model.safetensors.index.json").string(), index.dump(2));
  return folder;
}

TinyFolder tiny_folder(const std::string& family, int n_layers) {
  constexpr int kHidden = 8, kHeads = 4, kKvHeads = 2, kHeadDim = 6, kMlp = 10, kVocab = 32;
  TinyFolder model;
  model.config = {{"model_type", family},
                  {"num_hidden_layers", n_layers},
                  {"hidden_size", kHidden},
                  {"num_attention_heads", kHeads},
                  {"num_key_value_heads", kKvHeads},
                  {"head_dim", kHeadDim},
                  {"intermediate_size", kMlp},
                  {"vocab_size", kVocab},
                  {"max_position_embeddings", 64},
                  {"rms_norm_eps", 0.003},
                  {"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 500.0}}},
                  {"sliding_window", nullptr},
                  {"tie_word_embeddings", false},
                  {"bos_token_id", 1},
                  {"eos_token_id", 2}};
  model.add("model.embed_tokens.weight", {kVocab, kHidden});
  model.add("model.norm.weight", {kHidden});
  model.add("lm_head.weight", {kVocab, kHidden});
  for (int layer = 0; layer < n_layers; ++layer) {
    const std::string block = fmt::format("model.layers.{}.", layer);
    const std::string attention = block + "self_attn.";
    model.add(block + "input_layernorm.weight", {kHidden});
    model.add(attention + "q_proj.weight", {kHeads * kHeadDim, kHidden});
    model.add(attention + "k_proj.weight", {kKvHeads * kHeadDim, kHidden});
    model.add(attention + "v_proj.weight", {kKvHeads * kHeadDim, kHidden});
    model.add(attention + "o_proj.weight", {kHidden, kHeads * kHeadDim});
    if (family == "qwen2") {
      model.add(attention + "q_proj.bias", {kHeads * kHeadDim});
      model.add(attention + "k_proj.bias", {kKvHeads * kHeadDim});
      model.add(attention + "v_proj.bias", {kKvHeads * kHeadDim});
    }
    if (family == "qwen3") {
      model.add(attention + "q_norm.weight", {kHeadDim});
      model.add(attention + "k_norm.weight", {kHeadDim});
    }
    model.add(block + "post_attention_layernorm.weight", {kHidden});
    model.add(block + "mlp.gate_proj.weight", {kMlp, kHidden});
    model.add(block + "mlp.up_proj.weight", {kMlp, kHidden});
    model.add(block + "mlp.down_proj.weight", {kHidden, kMlp});
  }
  return model;
}

}  // namespace sinkscope::test
