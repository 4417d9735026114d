// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/hf_roles.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "capture/checkpoint/family.h"
#include "capture/checkpoint/hf_names.h"
#include "capture/checkpoint/hf_norms.h"
#include "capture/checkpoint/printable.h"
#include "capture/checkpoint/role_assignment.h"
#include "capture/checkpoint/spec_check.h"

namespace sinkscope {
namespace {

class Assignment {
 public:
  Assignment(HfConfig& config, const Checkpoint& checkpoint, const std::string& where)
      : config_(config),
        spec_(config.spec),
        checkpoint_(checkpoint),
        roles_(config.spec, *config.family, checkpoint,
               config.is_wrapped ? TensorSearch::Inside::wrapper : TensorSearch::Inside::nothing,
               where) {}

  RoleTable run() {
    const int n_layers = count_layers();
    infer_heads();
    finish_spec();
    if (std::string problem = contradiction(spec_); !problem.empty()) {
      if (config_.obstacles.empty()) config_.obstacles.push_back(std::move(problem));
      return assign_hf_norms(config_, checkpoint_);  // no shape follows from such sizes
    }
    if (std::string warning = roles_.fill_head(config_.tied.value_or(false)); !warning.empty())
      config_.warnings.push_back(std::move(warning));
    roles_.fill_all(n_layers);
    report_unused(roles_.finish(config_.obstacles), n_layers);
    return roles_.take_table();
  }

 private:
  // The layers that are worth looking at; a disagreement is said once, not tensor by tensor.
  int count_layers() {
    if (config_.family->is_complete) return spec_.n_layers;
    int found = 0;
    for (const TensorInfo& tensor : checkpoint_.tensors())
      if (const auto block = roles_.search().block(tensor.name))
        found = std::max(found, block->layer + 1);
    const bool only_extra =
        found > spec_.n_layers && found <= spec_.n_layers + config_.n_extra_layers;
    if (found != spec_.n_layers && !only_extra) {
      config_.obstacles.push_back(
          fmt::format("config.json says num_hidden_layers {}, the files hold {} layers",
                      spec_.n_layers, found));
    }
    return std::min(found, spec_.n_layers);
  }

  void infer_heads() {
    const std::int64_t q_rows = roles_.rows_of(Role::q), k_rows = roles_.rows_of(Role::k);
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
      roles_.object(Role::q, "rotary",
                    fmt::format("rotary positions over {} of head_dim {} dimensions: expected an "
                                "even number of at least 2",
                                rotary, head));
      rope.rotary_dim = 0;
    } else if (rope.scaling == RopeScaling::longrope && rope.short_factor.size() != half) {
      roles_.object(Role::q, "longrope",
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

  void report_unused(const std::vector<std::string>& unused, int n_layers) {
    std::vector<std::string> unexpected, activation, outside;
    for (const std::string& name : unused) {
      const auto block = roles_.search().block(name);
      const bool said = block && block->layer >= n_layers;  // count_layers
      if (roles_.search().is_outside(name)) {
        outside.push_back(name);
      } else if (is_activation_scale(name)) {
        activation.push_back(name);
      } else if (!said) {
        unexpected.push_back(name);
      }
    }
    if (!unexpected.empty()) config_.obstacles.push_back(unexpected_tensors(unexpected));
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
  const Checkpoint& checkpoint_;
  RoleAssignment roles_;
};

}  // namespace

RoleTable assign_hf_roles(HfConfig& config, const Checkpoint& checkpoint,
                          const std::string& where) {
  if (!config.is_known_family) return assign_hf_norms(config, checkpoint);
  return Assignment(config, checkpoint, where).run();
}

}  // namespace sinkscope
