// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/hf_names.h"

#include <fmt/format.h>

#include <algorithm>

#include "capture/checkpoint/family.h"

namespace sinkscope {

std::string hf_name(Role role, int layer) {
  for (const TensorName& line : llama_names()) {
    if (line.role != role) continue;
    return layer == kNoLayer ? line.name : fmt::format("layers.{}.{}", layer, line.name);
  }
  return "";
}

std::optional<LayerName> split_layer_name(std::string_view name, std::string_view word) {
  std::size_t at = name.find(word);
  while (at != std::string_view::npos && at != 0 && name[at - 1] != '.')
    at = name.find(word, at + 1);
  if (at == std::string_view::npos) return std::nullopt;
  LayerName split;
  split.prefix = name.substr(0, at);
  std::size_t i = at + word.size();
  const std::size_t digits = i;
  for (; i < name.size() && i < digits + 6 && name[i] >= '0' && name[i] <= '9'; ++i)
    split.layer = split.layer * 10 + (name[i] - '0');
  if (i == digits || i >= name.size() || name[i] != '.') return std::nullopt;
  split.rest = name.substr(i + 1);
  return split;
}

bool is_ignored_name(std::string_view name) {
  for (const std::string_view suffix : {".rotary_emb.inv_freq", ".attn.bias", ".attn.masked_bias",
                                        ".attention.bias", ".attention.masked_bias"}) {
    if (name.ends_with(suffix)) return true;
  }
  // What BERT adds for its training tasks, on top of the last hidden state.
  for (const std::string_view prefix : {"pooler.", "bert.pooler.", "cls."})
    if (name.starts_with(prefix)) return true;
  // Left over from old GGUF converters, or read while opening.
  if (name.starts_with("rope_factors_") || name.ends_with(".attn_rot_embd.weight")) return true;
  return name.starts_with("mtp.") || name.find(".mtp.") != std::string_view::npos ||
         name == "position_ids" || name.ends_with(".position_ids");
}

bool is_activation_scale(std::string_view name) {
  for (const std::string_view suffix :
       {"input_scale", "output_scale", ".k_scale", ".v_scale", ".q_scale", ".activation_scale"}) {
    if (name.ends_with(suffix)) return true;
  }
  return false;
}

}  // namespace sinkscope
