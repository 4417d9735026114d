// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/checkpoint/arch_spec.h"

#include <cmath>

namespace sinkscope {

std::vector<int> ArchSpec::attention_layers() const {
  std::vector<int> layers;
  for (int layer = 0; layer < n_layers; ++layer)
    if (mixer(layer) != Mixer::delta) layers.push_back(layer);
  return layers;
}

double ArchSpec::scale_of(int layer) const {
  if (attention_scale != 0) return attention_scale;
  return 1 / std::sqrt(static_cast<double>(std::max(head_dim_of(layer), 1)));
}

double norm_eps(const ArchSpec& spec, Role norm) {
  const bool is_latent =
      norm == Role::index_k_norm || norm == Role::q_a_norm || norm == Role::kv_a_norm;
  return is_latent && spec.latent.kv_rank > 0 ? 1e-6 : spec.norm_eps;
}

std::string to_string(RopeScaling s) {
  switch (s) {
    case RopeScaling::none:
      return "none";
    case RopeScaling::linear:
      return "linear";
    case RopeScaling::dynamic:
      return "dynamic";
    case RopeScaling::llama3:
      return "llama3";
    case RopeScaling::yarn:
      return "yarn";
    case RopeScaling::longrope:
      return "longrope";
    case RopeScaling::proportional:
      return "proportional";
  }
  return "?";
}

std::string to_string(Activation a) {
  switch (a) {
    case Activation::silu:
      return "silu";
    case Activation::gelu:
      return "gelu";
    case Activation::gelu_tanh:
      return "gelu_tanh";
    case Activation::relu:
      return "relu";
  }
  return "?";
}

}  // namespace sinkscope
