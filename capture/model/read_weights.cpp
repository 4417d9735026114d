// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/model/read_weights.h"

#include <vector>

namespace sinkscope {

Norm read_norm(const ModelFiles& model, Role role, int layer, at::Device device) {
  const ArchSpec& spec = model.spec();
  Norm norm{spec.norm_kind, norm_eps(spec, role), {}, {}, {}, {}};
  if (!model.has(role, layer)) return norm;
  const auto vector = [&](const std::vector<float>& values) {
    return at::tensor(values, at::kFloat).to(device);
  };
  norm.gain = vector(model.norm_gain(role, layer).effective);
  const bool has_own_bias = role == Role::index_k_norm && model.has(Role::index_k_norm_bias, layer);
  if (has_own_bias) norm.kind = NormKind::layer_norm;
  if ((spec.norm_bias || has_own_bias) && model.has(bias_of(role), layer))
    norm.bias = vector(model.read_vector(bias_of(role), layer));
  const Role down = role == Role::ln1 ? Role::ln1_gate_down : Role::ln2_gate_down;
  const Role up = role == Role::ln1 ? Role::ln1_gate_up : Role::ln2_gate_up;
  if ((role == Role::ln1 || role == Role::ln2) && model.has(down, layer)) {
    const auto matrix = [&](Role r) {
      return read_matrix(model, r, layer, 0, model.rows(r, layer), device, at::kFloat);
    };
    norm.gate_down = matrix(down);
    norm.gate_up = matrix(up);
  }
  return norm;
}

at::Tensor read_matrix(const ModelFiles& model, Role role, int layer, std::int64_t begin,
                       std::int64_t end, at::Device device, at::ScalarType dtype) {
  at::Tensor host = at::empty({end - begin, model.cols(role, layer)}, at::kFloat);
  model.read_rows(role, layer, begin, end, host.data_ptr<float>());
  return host.to(device, dtype);
}

}  // namespace sinkscope
