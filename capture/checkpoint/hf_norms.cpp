// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/hf_norms.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "capture/checkpoint/family.h"
#include "capture/checkpoint/hf_names.h"
#include "capture/checkpoint/printable.h"

namespace sinkscope {
namespace {

// The text before "layers." of the decoder: the shortest of those whose first layer has a norm of
// the usual name, so that towers for pictures and sound, which sit deeper, do not win.
std::optional<std::string> decoder_prefix(const Checkpoint& checkpoint) {
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

// Roles filled by tensors of the names asked for, behind one prefix.
class NameTable {
 public:
  NameTable(const Checkpoint& checkpoint, std::string prefix)
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

  // The head stands beside the decoder, or outside of all.
  bool add_head(const std::string& name) {
    const std::string inside = prefix_;
    const auto dot = inside.find_last_of('.', inside.empty() ? 0 : inside.size() - 2);
    const std::string outer = dot == std::string::npos ? "" : inside.substr(0, dot + 1);
    bool found = false;
    for (const std::string& prefix : {outer, std::string()}) {
      prefix_ = prefix;
      if ((found = add(Role::unembed, kNoLayer, name, 2))) break;
    }
    prefix_ = inside;
    return found;
  }

  bool has(const std::string& name) const { return checkpoint_.find(prefix_ + name) >= 0; }
  bool is_named(const std::string& name) const { return named_.count(name) != 0; }

  RoleTable table;

 private:
  const Checkpoint& checkpoint_;
  std::string prefix_;
  std::set<std::string> named_;
};

// The matrices of a Llama's block, and its head. Names those that are missing in every block.
std::vector<std::string> add_llama_matrices(NameTable& table, int n_layers) {
  std::vector<std::string> missing;
  for (const Role role : {Role::q, Role::k, Role::v, Role::o, Role::gate, Role::up, Role::down}) {
    bool found = false;
    for (const TensorName& line : lines_of(llama_names(), role))
      for (int layer = 0; layer < n_layers; ++layer)
        found |= table.add(role, layer, fmt::format("layers.{}.{}", layer, line.name), 2);
    if (!found) missing.emplace_back(to_string(role));
  }
  for (const TensorName& line : lines_of(llama_names(), Role::unembed))
    if (table.add_head(line.name)) break;
  return missing;
}

// What a description of the architecture has to say.
void tell_what_is_open(const Checkpoint& checkpoint, const NameTable& table,
                       const std::vector<std::string>& missing, HfConfig& config) {
  if (!missing.empty())
    config.obstacles.push_back("no tensor has a Llama's name of the role " +
                               fmt::format("{}", fmt::join(missing, ", ")));
  std::vector<std::string> open;
  for (const TensorInfo& tensor : checkpoint.tensors())
    if (!table.is_named(tensor.name) && !is_ignored_name(tensor.name)) open.push_back(tensor.name);
  if (!open.empty())
    config.obstacles.push_back(fmt::format("{} of {} tensors have no role: {}", open.size(),
                                           checkpoint.tensors().size(), listed(open, 3)));
}

}  // namespace

RoleTable assign_hf_norms(HfConfig& config, const Checkpoint& checkpoint) {
  const auto prefix = decoder_prefix(checkpoint);
  if (!prefix) {
    if (!config.is_known_family) tell_what_is_open(checkpoint, {checkpoint, ""}, {}, config);
    return {};
  }
  ArchSpec& spec = config.spec;
  NameTable norms(checkpoint, *prefix);
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
  if (!config.is_known_family) {
    const auto missing = add_llama_matrices(norms, std::min(n_layers, spec.n_layers));
    tell_what_is_open(checkpoint, norms, missing, config);
  }
  if (!without_role.empty()) {
    config.warnings.push_back(
        fmt::format("norms without a role in this version: {}",
                    listed(std::vector<std::string>(without_role.begin(), without_role.end()))));
  }
  return std::move(norms.table);
}

}  // namespace sinkscope
