// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/hf_roles.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "capture/checkpoint/family.h"
#include "capture/checkpoint/hf_names.h"
#include "capture/checkpoint/hf_norms.h"
#include "capture/checkpoint/printable.h"
#include "capture/checkpoint/spec_check.h"
#include "capture/checkpoint/tensor_search.h"
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

// −1 where it is no number; no tensor has that many elements.
std::int64_t product(const std::vector<std::int64_t>& shape) {
  std::int64_t n = 1;
  for (const std::int64_t size : shape)
    if (__builtin_mul_overflow(n, size, &n)) return -1;
  return n;
}

class Assignment {
 public:
  Assignment(HfConfig& config, const SafetensorsCheckpoint& checkpoint, std::string where)
      : config_(config),
        spec_(config.spec),
        checkpoint_(checkpoint),
        where_(std::move(where)),
        search_(checkpoint, *config.family,
                config.is_wrapped ? TensorSearch::Inside::wrapper : TensorSearch::Inside::nothing),
        used_(checkpoint.tensors().size(), false) {}

  RoleTable run() {
    const int n_layers = count_layers();
    infer_heads();
    finish_spec();
    if (std::string problem = contradiction(spec_); !problem.empty()) {
      if (config_.obstacles.empty()) config_.obstacles.push_back(std::move(problem));
      return assign_hf_norms(config_, checkpoint_);  // no shape follows from such sizes
    }
    fill_head();
    for (const Role role : outer_roles(spec_)) fill(role, kNoLayer);
    for (int layer = 0; layer < n_layers; ++layer) {
      for (const Role role : layer_roles(spec_, layer)) fill(role, layer);
    }
    grouped_.append_to(config_.obstacles);
    report_unused(n_layers);
    return std::move(table_);
  }

 private:
  int find(Role role, int layer) const {
    const TensorName* line = search_.spelling(role, layer);
    return line == nullptr ? -1 : search_.find(*line, layer);
  }

  const TensorInfo& info(int tensor) const {
    return checkpoint_.tensors()[static_cast<std::size_t>(tensor)];
  }

  // The layers that are worth looking at; a disagreement is said once, not tensor by tensor.
  int count_layers() {
    if (config_.family->is_complete) return spec_.n_layers;
    int found = 0;
    for (const TensorInfo& tensor : checkpoint_.tensors())
      if (const auto block = search_.block(tensor.name)) found = std::max(found, block->layer + 1);
    const bool only_extra =
        found > spec_.n_layers && found <= spec_.n_layers + config_.n_extra_layers;
    if (found != spec_.n_layers && !only_extra) {
      config_.obstacles.push_back(
          fmt::format("config.json says num_hidden_layers {}, the files hold {} layers",
                      spec_.n_layers, found));
    }
    return std::min(found, spec_.n_layers);
  }

  // Of a projection that has a tensor to itself.
  std::int64_t rows_of(Role role) const {
    const TensorName* line = search_.spelling(role, 0);
    if (line == nullptr || line->packing != Packing::own) return 0;
    const int tensor = search_.find(*line, 0);
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

  // `head_dim` of the layer that has these positions.
  void set_rotary_dim(RopeSpec& rope, int head_dim) {
    if (rope.partial == 0 && rope.rotary_dim == 0) return;  // none
    const int head = spec_.latent.kv_rank > 0 ? spec_.latent.rope_dim : head_dim;
    const double rotary = rope.rotary_dim > 0                         ? rope.rotary_dim
                          : rope.scaling == RopeScaling::proportional ? head
                                                                      : head * rope.partial;
    rope.rotary_dim = static_cast<int>(rotary);
    const auto half = static_cast<std::size_t>(rope.rotary_dim / 2);
    if (!(rotary >= 2) || rotary > head || rope.rotary_dim % 2 != 0) {
      grouped_.add(Role::q, "rotary",
                   fmt::format("rotary positions over {} of head_dim {} dimensions: expected an "
                               "even number of at least 2",
                               rotary, head));
      rope.rotary_dim = 0;
    } else if (rope.scaling == RopeScaling::longrope && rope.short_factor.size() != half) {
      grouped_.add(Role::q, "longrope",
                   fmt::format("longrope has {} factors for {} frequencies",
                               rope.short_factor.size(), half));
    }
  }

  void finish_spec() {
    if (spec_.attention_scale == 0 && spec_.layer_head_dims.empty())
      spec_.attention_scale = 1.0 / std::sqrt(static_cast<double>(std::max(spec_.head_dim, 1)));
    set_rotary_dim(spec_.rope, spec_.head_dim);
    for (std::size_t layer = 0; layer < spec_.layer_ropes.size(); ++layer)
      set_rotary_dim(spec_.layer_ropes[layer], spec_.layer_head_dims.empty()
                                                   ? spec_.head_dim
                                                   : spec_.layer_head_dims.at(layer));
    for (int* id : {&spec_.bos_id, &spec_.eos_id}) {
      if (*id < spec_.vocab_size) continue;
      config_.warnings.push_back(fmt::format("{} {} is outside the vocabulary of {}: not used",
                                             id == &spec_.bos_id ? "bos_token_id" : "eos_token_id",
                                             *id, spec_.vocab_size));
      *id = -1;
    }
  }

  // Whether the tensor has the shape that the role's packing demands; said if not.
  bool fits(Role role, int tensor, const Packed& expected, Packing packing) {
    used_[static_cast<std::size_t>(tensor)] = true;
    const TensorInfo& found = info(tensor);
    const bool any_rows = packing == Packing::shards && found.shape.size() == 2;
    const bool same = packing == Packing::reshaped || packing == Packing::qkv_each
                          ? found.n_elements() == product(expected.shape)
                      : any_rows ? found.shape.back() == expected.shape.back()
                                 : found.shape == expected.shape;
    if (!same) {
      grouped_.add(
          role, "shape",
          fmt::format("tensor {} has shape {}, expected {} ({})", printable(found.name),
                      shape_text(found.shape), shape_text(expected.shape), expected.because));
    } else if (!found.readable) {
      grouped_.add(
          role, "dtype",
          fmt::format("tensor {}: {}", printable(found.name), checkpoint_.refusal(tensor)));
    }
    return same;
  }

  // Takes the tensor, or the experts' tensors, for the role if the shapes are right.
  void take(Role role, int layer, const TensorName& line) {
    const Packed expected = packed(line.packing, role, spec_, layer);
    TensorRef ref;
    ref.tensor = search_.find(line, layer);
    ref.view = expected.view;
    if (role == Role::delta_norm) ref.stored_offset = static_cast<float>(spec_.norm_offset);
    bool all_fit = fits(role, ref.tensor, expected, line.packing);
    const int n_tensors = line.packing == Packing::expert_each ? spec_.moe.n_experts
                          : line.packing == Packing::qkv_each  ? 3
                          : line.packing == Packing::shards    ? spec_.ngram.n_shards
                                                               : 1;
    for (int expert = 1; expert < n_tensors; ++expert) {
      const int tensor = search_.find(line, layer, expert);
      if (tensor < 0) {
        miss(role, layer, line, expert);
        return;
      }
      all_fit = fits(role, tensor, expected, line.packing) && all_fit;
      if (line.packing == Packing::shards && info(tensor).n_rows() != info(ref.tensor).n_rows()) {
        grouped_.add(role, "shards",
                     fmt::format("tensor {} has {} rows, the first of its shards {}",
                                 printable(info(tensor).name), info(tensor).n_rows(),
                                 info(ref.tensor).n_rows()));
        all_fit = false;
      }
      ref.more.push_back(tensor);
    }
    if (!all_fit) return;
    ref.stored_as = {info(ref.tensor).name, line.packing};
    const std::string own = search_.name(line, layer, 0);
    const std::size_t prefix = ref.stored_as.name.size() - own.size();
    ref.stored_as.name.replace(prefix, own.size(), search_.name(line, layer, -1));
    table_.add(role, layer, std::move(ref));
  }

  void take(Role role, int tensor) {  // the embedding or the head, whichever serves as it
    if (!fits(role, tensor, packed(Packing::own, role, spec_, kNoLayer), Packing::own)) return;
    TensorRef ref;
    ref.tensor = tensor;
    table_.add(role, kNoLayer, ref);
  }

  void miss(Role role, int layer, const TensorName& line, int expert = 0) {
    const std::string prefix = config_.family->prefix;
    const bool has_prefix =
        std::any_of(checkpoint_.tensors().begin(), checkpoint_.tensors().end(),
                    [&](const TensorInfo& tensor) { return tensor.name.starts_with(prefix); });
    const bool prefixed = has_prefix && role != Role::unembed;
    const std::string name = search_.name(line, layer, expert);
    grouped_.add(role, "missing",
                 fmt::format("missing tensor {}{}: it is not in {} (an incomplete model, or "
                             "another architecture?)",
                             prefixed ? prefix : "", name, where_));
  }

  void fill(Role role, int layer) {
    if (const TensorName* line = search_.spelling(role, layer)) {
      take(role, layer, *line);
    } else if (const TensorName* usual = search_.usual_spelling(role, layer)) {
      miss(role, layer, *usual);
    } else {
      grouped_.add(role, "missing",
                   fmt::format("no tensor is named for the role {}{}", to_string(role),
                               layer == kNoLayer ? "" : fmt::format(" of block {}", layer)));
    }
  }

  void fill_head() {
    const int embed = find(Role::embed, kNoLayer);
    if (!spec_.has_head) {  // the architecture has none, whatever config.json
                            // ties
      spec_.tied = false;
      if (embed >= 0) used_[static_cast<std::size_t>(embed)] = true;
      fill(Role::embed, kNoLayer);
      return;
    }
    const int head = find(Role::unembed, kNoLayer);
    const HeadChoice choice = choose_head(checkpoint_, embed, head, config_.tied.value_or(false));
    spec_.tied = choice.tied;
    spec_.has_head = choice.unembed >= 0;
    if (!choice.warning.empty()) config_.warnings.push_back(choice.warning);
    if (embed >= 0) used_[static_cast<std::size_t>(embed)] = true;
    if (head >= 0) used_[static_cast<std::size_t>(head)] = true;
    if (choice.embed >= 0) {
      take(Role::embed, choice.embed);
    } else {
      fill(Role::embed, kNoLayer);  // says that it is missing
    }
    if (choice.unembed >= 0) take(Role::unembed, choice.unembed);
  }

  void report_unused(int n_layers) {
    std::vector<std::string> unexpected, activation, outside;
    for (std::size_t i = 0; i < used_.size(); ++i) {
      const std::string& name = checkpoint_.tensors()[i].name;
      if (used_[i] || is_ignored_name(name) || checkpoint_.is_scale(static_cast<int>(i))) continue;
      const auto block = search_.block(name);
      const bool said = block && block->layer >= n_layers;  // count_layers
      if (search_.is_outside(name)) {
        outside.push_back(name);
      } else if (is_activation_scale(name)) {
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
    if (config_.is_wrapped) {
      config_.warnings.push_back(
          outside.empty() ? "only the text part of the model is run"
                          : fmt::format("only the text part of the model is run; {} other tensors "
                                        "are not read: {}",
                                        outside.size(), listed(outside, 2)));
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
  TensorSearch search_;
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
