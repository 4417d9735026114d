// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/hf_norms.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "capture/checkpoint/hf_names.h"
#include "capture/checkpoint/printable.h"

namespace sinkscope {
namespace {

// The text before "layers." of the decoder: the shortest of those whose first layer has a norm of
// the usual name, so that towers for pictures and sound, which sit deeper, do not win.
std::optional<std::string> decoder_prefix(const SafetensorsCheckpoint& checkpoint) {
  std::optional<std::string> best;
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    const auto split = split_layer_name(tensor.name);
    if (!split || split->layer != 0) continue;
    if (split->rest != "input_layernorm.weight" && split->rest != "post_attention_layernorm.weight")
      continue;
    if (is_ignored_name(tensor.name)) continue;
    if (!best || split->prefix.size() < best->size()) best = std::string(split->prefix);
  }
  return best;
}

class NormTable {
 public:
  NormTable(const SafetensorsCheckpoint& checkpoint, std::string prefix)
      : checkpoint_(checkpoint), prefix_(std::move(prefix)) {}

  // Only vectors are norms.
  bool add(Role role, int layer, const std::string& name, std::size_t rank = 1) {
    const int tensor = checkpoint_.find(prefix_ + name);
    if (tensor < 0) return false;
    const TensorInfo& info = checkpoint_.tensors()[static_cast<std::size_t>(tensor)];
    if (info.shape.size() != rank || !info.readable) return false;
    TensorRef ref;
    ref.tensor = tensor;
    table.add(role, layer, ref);
    named_.insert(info.name);
    return true;
  }

  bool has(const std::string& name) const { return checkpoint_.find(prefix_ + name) >= 0; }
  bool is_named(const std::string& name) const { return named_.count(name) != 0; }

  RoleTable table;

 private:
  const SafetensorsCheckpoint& checkpoint_;
  std::string prefix_;
  std::set<std::string> named_;
};

}  // namespace

RoleTable assign_hf_norms(HfConfig& config, const SafetensorsCheckpoint& checkpoint) {
  const auto prefix = decoder_prefix(checkpoint);
  if (!prefix) return {};
  ArchSpec& spec = config.spec;
  NormTable norms(checkpoint, *prefix);
  int n_layers = 0;
  std::set<std::string> without_role;
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    const auto split = split_layer_name(tensor.name);
    if (split && split->prefix == *prefix) n_layers = std::max(n_layers, split->layer + 1);
  }
  if (spec.n_layers == 0) spec.n_layers = std::min(n_layers, 1024);
  for (int layer = 0; layer < std::min(n_layers, spec.n_layers); ++layer) {
    const std::string block = fmt::format("layers.{}.", layer);
    norms.add(Role::ln1, layer, block + "input_layernorm.weight");
    // Gemma 2, OLMo 2 and their kin norm the output of a sublayer; post_attention_layernorm comes
    // after attention there, and before the MLP only where no other norm has that place.
    const bool is_post = norms.has(block + "post_feedforward_layernorm.weight") ||
                         norms.has(block + "pre_feedforward_layernorm.weight");
    norms.add(is_post ? Role::ln1_post : Role::ln2, layer,
              block + "post_attention_layernorm.weight");
    norms.add(Role::ln2, layer, block + "pre_feedforward_layernorm.weight");
    norms.add(Role::ln2_post, layer, block + "post_feedforward_layernorm.weight");
    norms.add(Role::q_norm, layer, block + "self_attn.q_norm.weight");
    norms.add(Role::k_norm, layer, block + "self_attn.k_norm.weight");
  }
  for (const char* name : {"norm.weight", "final_layernorm.weight", "final_layer_norm.weight"})
    norms.add(Role::ln_final, kNoLayer, name);
  if (!norms.add(Role::embed, kNoLayer, "embed_tokens.weight", 2))
    norms.add(Role::embed, kNoLayer, "embed_in.weight", 2);
  if (norms.has("layers.0.input_layernorm.bias")) spec.norm_kind = NormKind::layer_norm;
  if (const TensorRef* first = norms.table.find(Role::ln1, 0);
      first != nullptr && spec.d_model == 0)
    spec.d_model =
        static_cast<int>(checkpoint.tensors()[static_cast<std::size_t>(first->tensor)].row_size());

  for (const TensorInfo& tensor : checkpoint.tensors()) {
    const auto split = split_layer_name(tensor.name);
    if (!split || split->prefix != *prefix || norms.is_named(tensor.name)) continue;
    if (split->rest.ends_with("norm.weight")) without_role.insert(std::string(split->rest));
  }
  if (!without_role.empty()) {
    config.warnings.push_back(
        fmt::format("norms without a role in this version: {}",
                    listed(std::vector<std::string>(without_role.begin(), without_role.end()))));
  }
  return std::move(norms.table);
}

}  // namespace sinkscope
