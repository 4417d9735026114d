// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/gguf_roles.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>

#include "capture/checkpoint/gguf_families.h"
#include "capture/checkpoint/gguf_file.h"
#include "capture/checkpoint/hf_names.h"
#include "capture/checkpoint/printable.h"

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

// Left over from old converters; the numbers they hold follow from the metadata.
bool is_ignored(std::string_view name) {
  const auto block = split_block_name(name);
  if (block) return block->rest == "attn_rot_embd.weight";
  return name.starts_with("rope_factors_");  // read while opening
}

bool shape_agrees(const std::vector<std::int64_t>& found,
                  const std::vector<std::int64_t>& expected) {
  return std::equal(found.begin(), found.end(), expected.begin(), expected.end(),
                    [](std::int64_t a, std::int64_t b) { return b == 0 || a == b; });
}

class Roles {
 public:
  Roles(const GgufFile& file, const GgufFamily& family, GgufModel& model)
      : tensors_(file.tensors()), family_(family), model_(model) {
    for (int i = 0; i < static_cast<int>(tensors_.size()); ++i) index_[tensors_[at(i)].name] = i;
    is_used_.resize(tensors_.size());
  }

  void fill() {
    const ArchSpec& spec = model_.spec;
    add(Role::embed, kNoLayer);
    if (!spec.tied) add(Role::unembed, kNoLayer);
    for (const Role role : outer_roles(spec)) add(role, kNoLayer);
    if (spec.rope.has_divisors) add(Role::rope_divisors, kNoLayer);
    if (const TensorRef* embed = model_.roles.find(Role::embed, kNoLayer); spec.tied && embed) {
      model_.roles.add(Role::unembed, kNoLayer, TensorRef(*embed));
    }
    for (int layer = 0; layer < spec.n_layers; ++layer) {
      for (const Role role : layer_roles(spec, layer)) add(role, layer);
    }
    report();
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  void add(Role role, int layer) {
    const auto spellings = names_of(family_, role);
    if (spellings.empty()) return;
    const TensorName& line = spellings.front();
    const std::string name =
        layer == kNoLayer ? std::string(line.name) : fmt::format("blk.{}.{}", layer, line.name);
    const auto found = index_.find(name);
    if (found == index_.end()) {
      missing_.insert(name);
      return;
    }
    const TensorInfo& tensor = tensors_[at(found->second)];
    is_used_[at(found->second)] = true;
    const Packed expected = packed(line.packing, role, model_.spec, layer);
    const bool agrees = shape_agrees(tensor.shape, expected.shape);
    if (!agrees) {
      model_.obstacles.push_back(fmt::format("tensor {} has shape {}, the metadata say {}",
                                             printable(name), shape_text(tensor.shape),
                                             shape_text(expected.shape)));
    }
    if (!tensor.readable) unreadable_[tensor.dtype].insert(name);
    // The norms of a model that cannot be run are still looked at: only those that can be.
    if (is_norm_gain(role) && (!agrees || !tensor.readable)) return;
    TensorRef ref = reference(role, found->second);
    ref.view = expected.view;
    if (is_norm_gain(role) && family_.one_plus) ref.stored_offset = 1.0f;
    model_.roles.add(role, layer, std::move(ref));
  }

  TensorRef reference(Role role, int tensor) const {
    const ArchSpec& spec = model_.spec;
    TensorRef ref;
    ref.tensor = tensor;
    const bool is_q = role == Role::q || role == Role::q_bias;
    const bool is_k = role == Role::k || role == Role::k_bias;
    if (!family_.pairs || !(is_q || is_k)) return ref;
    // Un-permuting needs whole heads: with sizes unknown or contradicted, rows stay as stored.
    ref.n_heads = is_q ? spec.n_heads : spec.n_kv_heads;
    ref.head_dim = spec.head_dim;
    ref.rotary_dim = spec.rope.rotary_dim;
    const std::int64_t n_rows = std::int64_t{ref.n_heads} * ref.head_dim;
    const auto& shape = tensors_[at(tensor)].shape;
    if (n_rows > 0 && !shape.empty() && shape.front() == n_rows) ref.order = RowOrder::llama_pairs;
    return ref;
  }

  void report() {
    const auto all = [](const std::set<std::string>& names) {
      return listed({names.begin(), names.end()});
    };
    if (!missing_.empty()) model_.obstacles.push_back("missing: " + all(missing_));
    for (const auto& [dtype, names] : unreadable_) {
      model_.obstacles.push_back(fmt::format("{} cannot be decoded here: {}", dtype, all(names)));
    }
    std::vector<std::string> unexpected;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      if (!is_used_[i] && !is_ignored(tensors_[i].name)) unexpected.push_back(tensors_[i].name);
    }
    if (!unexpected.empty()) {
      model_.obstacles.push_back(fmt::format("not part of architecture {}: {}",
                                             model_.spec.architecture, listed(unexpected)));
    }
  }

  const std::vector<TensorInfo>& tensors_;
  const GgufFamily& family_;
  GgufModel& model_;
  std::unordered_map<std::string, int> index_;
  std::vector<bool> is_used_;
  std::set<std::string> missing_;                            // several roles may share a tensor
  std::map<std::string, std::set<std::string>> unreadable_;  // by dtype
};

}  // namespace

void note_optional_tensors(const GgufFile& file, ArchSpec& spec) {
  spec.tied = true;
  for (const TensorInfo& tensor : file.tensors()) {
    if (tensor.name == "output.weight") spec.tied = false;
    if (tensor.name == "rope_freqs.weight") spec.rope.has_divisors = true;
    const auto block = split_block_name(tensor.name);
    if (!block || !block->rest.ends_with(".bias")) continue;
    const std::string_view part = block->rest.substr(0, block->rest.size() - 5);
    if (part == "attn_q" || part == "attn_k" || part == "attn_v") spec.qkv_bias = true;
    if (part == "attn_output") spec.o_bias = true;
    if (part == "ffn_gate" || part == "ffn_up" || part == "ffn_down") spec.mlp_bias = true;
  }
}

void add_roles(const GgufFile& file, const GgufFamily& family, GgufModel& model) {
  Roles(file, family, model).fill();
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
