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

#include "capture/checkpoint/gguf_file.h"
#include "capture/checkpoint/printable.h"

namespace sinkscope {
namespace {

// The part of a tensor's name after "blk.N.", or the whole name; and its expected shape.
struct RoleName {
  Role role;
  const char* name;
  std::vector<std::int64_t> shape;  // 0 = not known, not checked
};

std::vector<RoleName> model_roles(const ArchSpec& spec) {
  std::vector<RoleName> roles = {
      {Role::embed, "token_embd.weight", {spec.vocab_size, spec.d_model}},
      {Role::ln_final, "output_norm.weight", {spec.d_model}},
  };
  if (!spec.tied)
    roles.push_back({Role::unembed, "output.weight", {spec.vocab_size, spec.d_model}});
  if (spec.rope.has_divisors) {
    roles.push_back({Role::rope_divisors, "rope_freqs.weight", {spec.rope.rotary_dim / 2}});
  }
  return roles;
}

std::vector<RoleName> block_roles(const ArchSpec& spec) {
  const std::int64_t d = spec.d_model, mlp = spec.d_mlp, q = spec.q_width(), kv = spec.kv_width();
  std::vector<RoleName> roles = {
      {Role::ln1, "attn_norm.weight", {d}},      {Role::q, "attn_q.weight", {q, d}},
      {Role::k, "attn_k.weight", {kv, d}},       {Role::v, "attn_v.weight", {kv, d}},
      {Role::o, "attn_output.weight", {d, q}},   {Role::ln2, "ffn_norm.weight", {d}},
      {Role::gate, "ffn_gate.weight", {mlp, d}}, {Role::up, "ffn_up.weight", {mlp, d}},
      {Role::down, "ffn_down.weight", {d, mlp}},
  };
  const auto add = [&roles](std::initializer_list<RoleName> more) {
    roles.insert(roles.end(), more);
  };
  if (spec.qkv_bias) {
    add({{Role::q_bias, "attn_q.bias", {q}},
         {Role::k_bias, "attn_k.bias", {kv}},
         {Role::v_bias, "attn_v.bias", {kv}}});
  }
  if (spec.o_bias) add({{Role::o_bias, "attn_output.bias", {d}}});
  if (spec.mlp_bias) {
    add({{Role::gate_bias, "ffn_gate.bias", {mlp}},
         {Role::up_bias, "ffn_up.bias", {mlp}},
         {Role::down_bias, "ffn_down.bias", {d}}});
  }
  if (spec.qk_norm == QkNorm::per_head) {
    add({{Role::q_norm, "attn_q_norm.weight", {spec.head_dim}},
         {Role::k_norm, "attn_k_norm.weight", {spec.head_dim}}});
  }
  return roles;
}

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
  return block && block->rest == "attn_rot_embd.weight";
}

bool shape_agrees(const std::vector<std::int64_t>& found,
                  const std::vector<std::int64_t>& expected) {
  return std::equal(found.begin(), found.end(), expected.begin(), expected.end(),
                    [](std::int64_t a, std::int64_t b) { return b == 0 || a == b; });
}

bool is_norm(Role role) {
  return role == Role::ln1 || role == Role::ln2 || role == Role::ln_final || role == Role::q_norm ||
         role == Role::k_norm;
}

class LlamaRoles {
 public:
  LlamaRoles(const GgufFile& file, GgufModel& model) : tensors_(file.tensors()), model_(model) {
    for (int i = 0; i < static_cast<int>(tensors_.size()); ++i) index_[tensors_[at(i)].name] = i;
    is_used_.resize(tensors_.size());
  }

  void fill() {
    const ArchSpec& spec = model_.spec;
    for (const RoleName& role : model_roles(spec)) add(role, role.name, kNoLayer);
    if (const TensorRef* embed = model_.roles.find(Role::embed, kNoLayer); spec.tied && embed) {
      model_.roles.add(Role::unembed, kNoLayer, TensorRef(*embed));
    }
    const std::vector<RoleName> in_block = block_roles(spec);
    for (int layer = 0; layer < spec.n_layers; ++layer) {
      for (const RoleName& role : in_block) {
        add(role, fmt::format("blk.{}.{}", layer, role.name), layer);
      }
    }
    report();
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  void add(const RoleName& role, const std::string& name, int layer) {
    const auto found = index_.find(name);
    if (found == index_.end()) {
      missing_.push_back(name);
      return;
    }
    const TensorInfo& tensor = tensors_[at(found->second)];
    is_used_[at(found->second)] = true;
    const bool agrees = shape_agrees(tensor.shape, role.shape);
    if (!agrees) {
      model_.obstacles.push_back(fmt::format("tensor {} has shape {}, the metadata say {}",
                                             printable(name), shape_text(tensor.shape),
                                             shape_text(role.shape)));
    }
    if (!tensor.readable) unreadable_[tensor.dtype].push_back(name);
    // The norms of a model that cannot be run are still looked at: only those that can be.
    if (is_norm(role.role) && (!agrees || !tensor.readable)) return;
    model_.roles.add(role.role, layer, reference(role.role, found->second));
  }

  TensorRef reference(Role role, int tensor) const {
    const ArchSpec& spec = model_.spec;
    TensorRef ref;
    ref.tensor = tensor;
    const bool is_q = role == Role::q || role == Role::q_bias;
    const bool is_k = role == Role::k || role == Role::k_bias;
    if (spec.architecture != "llama" || !(is_q || is_k)) return ref;
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
    if (!missing_.empty()) {
      model_.obstacles.push_back("missing: " + listed(missing_));
    }
    for (const auto& [dtype, names] : unreadable_) {
      model_.obstacles.push_back(
          fmt::format("{} cannot be decoded here: {}", dtype, listed(names)));
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
  GgufModel& model_;
  std::unordered_map<std::string, int> index_;
  std::vector<bool> is_used_;
  std::vector<std::string> missing_;
  std::map<std::string, std::vector<std::string>> unreadable_;  // by dtype
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

void add_llama_roles(const GgufFile& file, GgufModel& model) { LlamaRoles(file, model).fill(); }

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
