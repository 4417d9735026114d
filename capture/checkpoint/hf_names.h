// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "capture/checkpoint/arch_spec.h"

namespace sinkscope {

// The Llama family's tensor names in a Hugging Face folder, without the optional prefix `model.`:
// "embed_tokens.weight", "layers.3.self_attn.q_proj.weight", "lm_head.weight".
std::string hf_name(Role role, int layer);

// Which of the layer roles a block of a model with this spec must fill, in the order of the forward
// pass; and which roles stand outside the blocks, embedding and head aside.
std::vector<Role> layer_roles(const ArchSpec& spec, int layer = 0);
std::vector<Role> outer_roles(const ArchSpec& spec);

// The shape that the spec demands of a role, and in whose words: "num_attention_heads 4 x head_dim
// 24, hidden_size 64". Experts stand one below the other.
struct ExpectedShape {
  std::vector<std::int64_t> shape;
  std::string because;
};
ExpectedShape expected_shape(Role role, const ArchSpec& spec, int layer = 0);

// The block index in "….layers.12.…", with the text before `word` ("layers.") and after the number.
struct LayerName {
  std::string_view prefix, rest;
  int layer = 0;
};
std::optional<LayerName> split_layer_name(std::string_view name, std::string_view word = "layers.");

// Tensors that hold nothing a forward pass needs: mask and frequency buffers that old versions
// saved, position ids, heads for multi-token prediction (`mtp.`), BERT's pooler and `cls.` heads,
// and what GGUF converters leave beside the metadata (attn_rot_embd, rope_factors_*).
bool is_ignored_name(std::string_view name);

// Factors for quantized activations or caches, which weights that are dequantized do not need.
bool is_activation_scale(std::string_view name);

}  // namespace sinkscope
