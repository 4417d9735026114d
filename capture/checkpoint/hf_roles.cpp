// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/hf_roles.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "capture/checkpoint/hf_names.h"
#include "capture/checkpoint/hf_norms.h"
#include "capture/checkpoint/printable.h"
#include "capture/checkpoint/tied_head.h"

namespace sinkscope {
namespace {

// Obstacles of one kind and role in many layers are one line: the first, and how many more.
class Grouped {
 public:
  void add(Role role, const std::string& kind, const std::string& sentence) {
    const auto [found, added] = groups_.try_emplace({kind, role}, Group{sentence, 0});
    if (!added) ++found->second.more;
  }
  void append_to(std::vector<std::string>& lines) const {
    for (const auto& [key, group] : groups_) {
      lines.push_back(group.more == 0
                          ? group.sentence
                          : fmt::format("{} (and the same in {} more layer{})", group.sentence,
                                        group.more, group.more == 1 ? "" : "s"));
    }
  }

 private:
  struct Group {
    std::string sentence;
    int more = 0;
  };
  std::map<std::pair<std::string, Role>, Group> groups_;
};

class Assignment {
 public:
  Assignment(HfConfig& config, const SafetensorsCheckpoint& checkpoint, std::string where)
      : config_(config),
        spec_(config.spec),
        checkpoint_(checkpoint),
        where_(std::move(where)),
        used_(checkpoint.tensors().size(), false) {}

  RoleTable run() {
    const int n_layers = count_layers();
    infer_heads();
    finish_spec();
    fill_head();
    fill(Role::ln_final, kNoLayer);
    if (spec_.pre_affine) fill(Role::ln_final_pre, kNoLayer);
    const std::vector<Role> roles = layer_roles(spec_);
    for (int layer = 0; layer < n_layers; ++layer) {
      for (const Role role : roles) fill(role, layer);
    }
    grouped_.append_to(config_.obstacles);
    report_unused(n_layers);
    return std::move(table_);
  }

 private:
  int find(Role role, int layer) const {
    const std::string name = hf_name(role, layer);
    const int prefixed = checkpoint_.find("model." + name);
    return prefixed >= 0 ? prefixed : checkpoint_.find(name);
  }

  const TensorInfo& info(int tensor) const {
    return checkpoint_.tensors()[static_cast<std::size_t>(tensor)];
  }

  static bool is_decoder(const LayerName& name) {
    return name.prefix.empty() || name.prefix == "model.";
  }

  // The layers that are worth looking at; a disagreement is said once, not tensor by tensor.
  int count_layers() {
    int found = 0;
    for (const TensorInfo& tensor : checkpoint_.tensors()) {
      const auto split = split_layer_name(tensor.name);
      if (split && is_decoder(*split)) found = std::max(found, split->layer + 1);
    }
    if (found != spec_.n_layers) {
      config_.obstacles.push_back(
          fmt::format("config.json says num_hidden_layers {}, the files hold {} layers",
                      spec_.n_layers, found));
    }
    return std::min(found, spec_.n_layers);
  }

  std::int64_t rows_of(Role role) const {
    const int tensor = find(role, 0);
    return tensor < 0 || info(tensor).shape.size() != 2 ? 0 : info(tensor).shape[0];
  }

  void infer_heads() {
    const std::int64_t q_rows = rows_of(Role::q), k_rows = rows_of(Role::k);
    if (spec_.head_dim == 0) {
      spec_.head_dim = spec_.d_model / spec_.n_heads;
      if (q_rows > 0 && q_rows != std::int64_t{spec_.n_heads} * spec_.head_dim) {
        const std::int64_t inferred = q_rows / spec_.n_heads;
        if (q_rows % spec_.n_heads == 0 && inferred <= (1 << 16)) {
          config_.warnings.push_back(fmt::format(
              "config.json has no head_dim; q_proj has {} rows for {} heads: head_dim {} is used, "
              "not hidden_size / num_attention_heads = {}",
              q_rows, spec_.n_heads, inferred, spec_.head_dim));
          spec_.head_dim = static_cast<int>(inferred);
        }
      }
    }
    if (spec_.n_kv_heads == 0) {
      spec_.n_kv_heads = spec_.n_heads;
      const std::int64_t dim = std::max(spec_.head_dim, 1);
      if (k_rows > 0 && k_rows % dim == 0 && k_rows / dim < spec_.n_heads) {
        spec_.n_kv_heads = static_cast<int>(k_rows / dim);
        config_.warnings.push_back(
            fmt::format("config.json has no num_key_value_heads; k_proj's {} rows make it {}",
                        k_rows, spec_.n_kv_heads));
      }
    }
    if (spec_.n_heads % spec_.n_kv_heads != 0) {
      config_.obstacles.push_back(
          fmt::format("num_attention_heads {} is not a multiple of num_key_value_heads {}",
                      spec_.n_heads, spec_.n_kv_heads));
    }
  }

  void finish_spec() {
    spec_.attention_scale = 1.0 / std::sqrt(static_cast<double>(std::max(spec_.head_dim, 1)));
    const double rotary = spec_.head_dim * config_.partial_rotary;
    if (!(rotary >= 2) || rotary > spec_.head_dim || static_cast<int>(rotary) % 2 != 0) {
      config_.obstacles.push_back(
          fmt::format("rotary positions over {} of head_dim {} dimensions: expected an even number "
                      "of at least 2",
                      rotary, spec_.head_dim));
    } else {
      spec_.rope.rotary_dim = static_cast<int>(rotary);
    }
    for (int* id : {&spec_.bos_id, &spec_.eos_id}) {
      if (*id < spec_.vocab_size) continue;
      config_.warnings.push_back(fmt::format("{} {} is outside the vocabulary of {}: not used",
                                             id == &spec_.bos_id ? "bos_token_id" : "eos_token_id",
                                             *id, spec_.vocab_size));
      *id = -1;
    }
  }

  // Takes the tensor for the role if its shape is right.
  void take(Role role, int layer, int tensor) {
    used_[static_cast<std::size_t>(tensor)] = true;
    const ExpectedShape expected = expected_shape(role, spec_);
    const TensorInfo& found = info(tensor);
    if (found.shape != expected.shape) {
      grouped_.add(
          role, "shape",
          fmt::format("tensor {} has shape {}, expected {} ({})", printable(found.name),
                      shape_text(found.shape), shape_text(expected.shape), expected.because));
      return;
    }
    if (!found.readable) {
      grouped_.add(
          role, "dtype",
          fmt::format("tensor {}: {}", printable(found.name), checkpoint_.refusal(tensor)));
    }
    TensorRef ref;
    ref.tensor = tensor;
    table_.add(role, layer, ref);
  }

  void miss(Role role, int layer) {
    const bool has_prefix = checkpoint_.find("model.embed_tokens.weight") >= 0 ||
                            checkpoint_.find("model.norm.weight") >= 0;
    const bool prefixed = has_prefix && role != Role::unembed;
    grouped_.add(
        role, "missing",
        fmt::format("missing tensor {}{}: it is not in {} (an incomplete model, or another "
                    "architecture?)",
                    prefixed ? "model." : "", hf_name(role, layer), where_));
  }

  void fill(Role role, int layer) {
    const int tensor = find(role, layer);
    if (tensor >= 0) {
      take(role, layer, tensor);
    } else {
      miss(role, layer);
    }
  }

  void fill_head() {
    const int embed = find(Role::embed, kNoLayer), head = find(Role::unembed, kNoLayer);
    const HeadChoice choice = choose_head(checkpoint_, embed, head, config_.tied.value_or(false));
    spec_.tied = choice.tied;
    spec_.has_head = choice.unembed >= 0;
    if (!choice.warning.empty()) config_.warnings.push_back(choice.warning);
    if (embed >= 0) used_[static_cast<std::size_t>(embed)] = true;
    if (head >= 0) used_[static_cast<std::size_t>(head)] = true;
    if (choice.embed >= 0) {
      take(Role::embed, kNoLayer, choice.embed);
    } else {
      miss(Role::embed, kNoLayer);
    }
    if (choice.unembed >= 0) take(Role::unembed, kNoLayer, choice.unembed);
  }

  void report_unused(int n_layers) {
    std::vector<std::string> unexpected, activation;
    for (std::size_t i = 0; i < used_.size(); ++i) {
      const std::string& name = checkpoint_.tensors()[i].name;
      if (used_[i] || is_ignored_name(name) || checkpoint_.is_scale(static_cast<int>(i))) continue;
      const auto split = split_layer_name(name);
      const bool said = split && is_decoder(*split) && split->layer >= n_layers;  // count_layers
      if (is_activation_scale(name)) {
        activation.push_back(name);
      } else if (!said) {
        unexpected.push_back(name);
      }
    }
    if (!unexpected.empty()) {
      config_.obstacles.push_back(fmt::format("{} unexpected tensor{}: {}", unexpected.size(),
                                              unexpected.size() == 1 ? "" : "s",
                                              listed(unexpected)));
    }
    if (!activation.empty()) {
      config_.warnings.push_back(
          fmt::format("{} scales of activations are not applied, weights are dequantized: {}",
                      activation.size(), listed(activation, 2)));
    }
  }

  HfConfig& config_;
  ArchSpec& spec_;
  const SafetensorsCheckpoint& checkpoint_;
  std::string where_;
  std::vector<bool> used_;
  RoleTable table_;
  Grouped grouped_;
};

}  // namespace

RoleTable assign_hf_roles(HfConfig& config, const SafetensorsCheckpoint& checkpoint,
                          const std::string& where) {
  if (!config.is_known_family) return assign_hf_norms(config, checkpoint);
  return Assignment(config, checkpoint, where).run();
}

}  // namespace sinkscope
