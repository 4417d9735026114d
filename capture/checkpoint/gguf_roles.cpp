// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/gguf_roles.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "capture/checkpoint/gguf_families.h"
#include "capture/checkpoint/gguf_file.h"
#include "capture/checkpoint/printable.h"
#include "capture/checkpoint/role_assignment.h"
#include "capture/checkpoint/spec_check.h"

namespace sinkscope {
namespace {

// "blk.12.attn_q.weight" -> 12 and "attn_q.weight".
struct BlockName {
  int layer = 0;
  std::string_view rest;
};

std::optional<BlockName> split_block_name(std::string_view name) {
  constexpr std::string_view kPrefix = "blk.";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  BlockName parts;
  const char* end = name.data() + name.size();
  const auto [rest, failure] = std::from_chars(name.data() + kPrefix.size(), end, parts.layer);
  if (failure != std::errc() || rest == end || *rest != '.' || parts.layer < 0) return std::nullopt;
  parts.rest = std::string_view(rest + 1, static_cast<std::size_t>(end - rest - 1));
  return parts;
}

}  // namespace

void note_optional_tensors(const GgufFile& file, ArchSpec& spec) {
  for (const TensorInfo& tensor : file.tensors()) {
    if (tensor.name == "rope_freqs.weight") spec.rope.has_divisors = true;
    const auto block = split_block_name(tensor.name);
    if (!block || !block->rest.ends_with(".bias")) continue;
    const std::string_view part = block->rest.substr(0, block->rest.size() - 5);
    if (part == "attn_q" || part == "attn_k" || part == "attn_v") spec.qkv_bias = true;
    if (part == "attn_output") spec.o_bias = true;
    if (part == "ffn_gate" || part == "ffn_up" || part == "ffn_down") spec.mlp_bias = true;
  }
}

void add_roles(const GgufFile& file, const GgufFamily& family, const std::string& where,
               GgufModel& model) {
  ArchSpec& spec = model.spec;
  if (std::string problem = contradiction(spec); !problem.empty()) {
    if (model.obstacles.empty()) model.obstacles.push_back(std::move(problem));
    add_norm_roles(file, family.one_plus ? 1.0f : 0.0f, model);  // no shape follows from such sizes
    return;
  }
  const Family names{.model_type = family.architecture,
                     .names = family.names,
                     .usual = gguf_names(),
                     .prefix = "",
                     .layers = "blk.",
                     .stored_offset = family.one_plus ? 1.0f : 0.0f};
  RoleAssignment roles(spec, names, file, TensorSearch::Inside::nothing, where);
  // A file without output.weight shares the embedding, whatever its metadata say.
  roles.fill_head(file.find("output.weight") < 0);
  roles.fill_all(spec.n_layers);
  const std::vector<std::string> unused = roles.finish(model.obstacles);
  if (!unused.empty()) model.obstacles.push_back(unexpected_tensors(unused));
  model.roles = roles.take_table();
}

void add_norm_roles(const GgufFile& file, float stored_offset, GgufModel& model) {
  constexpr int kMostLayers = 1024;
  const auto& tensors = file.tensors();
  const auto any_named = [&tensors](std::string_view rest) {
    return std::any_of(tensors.begin(), tensors.end(), [rest](const TensorInfo& tensor) {
      const auto block = split_block_name(tensor.name);
      return block && block->rest == rest;
    });
  };
  // "post_attention_norm" is the norm after attention where there is another one before the MLP or
  // after it (Gemma 2, OLMo 2), and else the norm before the MLP (Qwen3-Next, GPT-OSS).
  const bool is_after = any_named("ffn_norm.weight") || any_named("post_ffw_norm.weight");
  const std::map<std::string_view, Role> by_name = {
      {"attn_norm.weight", Role::ln1},
      {"attn_q_norm.weight", Role::q_norm},
      {"attn_k_norm.weight", Role::k_norm},
      {"post_attention_norm.weight", is_after ? Role::ln1_post : Role::ln2},
      {"ffn_norm.weight", Role::ln2},
      {"post_ffw_norm.weight", Role::ln2_post},
  };
  std::set<std::string> without_role;
  for (int i = 0; i < static_cast<int>(tensors.size()); ++i) {
    const TensorInfo& tensor = tensors[static_cast<std::size_t>(i)];
    TensorRef ref;
    ref.tensor = i;
    if (tensor.name == "token_embd.weight") model.roles.add(Role::embed, kNoLayer, ref);
    if (tensor.shape.size() != 1 || !tensor.readable) continue;
    ref.stored_offset = stored_offset;
    if (tensor.name == "output_norm.weight") model.roles.add(Role::ln_final, kNoLayer, ref);
    const auto block = split_block_name(tensor.name);
    if (!block || block->layer >= kMostLayers) continue;
    if (const auto role = by_name.find(block->rest); role != by_name.end()) {
      model.roles.add(role->second, block->layer, ref);
      model.spec.n_layers = std::max(model.spec.n_layers, block->layer + 1);
    } else if (block->rest.ends_with("norm.weight")) {
      without_role.insert(std::string(block->rest));
    }
  }
  if (without_role.empty()) return;
  model.warnings.push_back("norms without a role in this version: " +
                           listed({without_role.begin(), without_role.end()}));
}

}  // namespace sinkscope
