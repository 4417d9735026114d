// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/model/model_inputs.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <numeric>

#include "capture/model/linear.h"
#include "capture/model/read_weights.h"

namespace sinkscope {
namespace {

// Rows `of` a role, [T, D]; a row that occurs twice is read once.
at::Tensor gather_rows(const ModelFiles& model, Role role, const std::vector<int>& of) {
  const std::int64_t d = model.cols(role, kNoLayer);
  at::Tensor host = at::empty({1, static_cast<std::int64_t>(of.size()), d}, at::kFloat);
  float* rows = host.data_ptr<float>();
  std::map<int, std::size_t> first_use;
  for (std::size_t t = 0; t < of.size(); ++t) {
    float* row = rows + static_cast<std::int64_t>(t) * d;
    const auto [seen, is_new] = first_use.emplace(of[t], t);
    if (is_new) {
      model.read_rows(role, kNoLayer, of[t], of[t] + 1, row);
    } else {
      std::copy_n(rows + static_cast<std::int64_t>(seen->second) * d, d, row);
    }
  }
  return host;
}

}  // namespace

at::Tensor embed(const ModelFiles& model, const std::vector<int>& ids, at::Device device,
                 at::ScalarType dtype) {
  const ArchSpec& spec = model.spec();
  at::Tensor x = gather_rows(model, Role::embed, ids);
  if (spec.embed_scale != 1) {
    // Gemma rounds the factor to the run's type.
    const double scale =
        dtype == at::kFloat
            ? spec.embed_scale
            : at::scalar_tensor(spec.embed_scale, at::kFloat).to(dtype).item<double>();
    x = x * scale;
  }
  if (spec.learned_positions) {
    std::vector<int> positions(ids.size());
    std::iota(positions.begin(), positions.end(), spec.position_offset);
    x = x + gather_rows(model, Role::pos_embed, positions);
  }
  if (spec.n_types > 0) x = x + gather_rows(model, Role::type_embed, {0});
  if (spec.embed_norm)
    x = apply_norm(read_norm(model, Role::embed_norm, kNoLayer, device), x.to(device)).y;
  return x.to(device, dtype);
}

LayerInputs layer_inputs(const ModelFiles& model, const std::vector<int>& ids,
                         const at::Tensor& embedded) {
  const ArchSpec& spec = model.spec();
  if (spec.d_per_layer == 0) return {};
  const at::Device device = embedded.device();
  const at::ScalarType dtype = embedded.scalar_type();
  const std::int64_t rows = model.rows(Role::per_layer_proj, kNoLayer);
  const at::Tensor projection =
      read_matrix(model, Role::per_layer_proj, kNoLayer, 0, rows, device, dtype);
  const auto by_layer = [&](const at::Tensor& x) {
    return x.unflatten(-1, {spec.n_layers, spec.d_per_layer});
  };
  const double width = spec.d_model, narrow = spec.d_per_layer;
  const at::Tensor projected = linear_layer(embedded, projection) / std::sqrt(width);
  const Norm norm = read_norm(model, Role::per_layer_norm, kNoLayer, device);
  const at::Tensor own = gather_rows(model, Role::per_layer_embed, ids).to(device, dtype);
  const at::Tensor normed = apply_norm(norm, by_layer(projected)).y;
  return {(normed + by_layer(own) * std::sqrt(narrow)) / std::sqrt(2.0), normed};
}

}  // namespace sinkscope
