// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <ATen/ATen.h>

#include <optional>
#include <vector>

#include "capture/checkpoint/role_table.h"
#include "capture/model/norm.h"
#include "capture/record/site.h"
#include "core/normalizer.h"

namespace sinkscope {

// How attention of one block is changed; heads are query heads.
struct AttentionEdit {
  std::vector<std::optional<Normalizer>> normalizers;  // [H]; none: the model's own
  at::Tensor lost;  // [H, T] bool, keys that queries do not see; undefined = none
  at::Tensor
      renormalize;  // [H] bool: the others share the mass of lost keys; where false it is gone
  at::Tensor value_scale;  // [H, T] float32; undefined = 1
};

// Where a forward pass can be changed. Called on the engine's thread, in execution order; out of
// place. The defaults change nothing, to the bit.
class Interventions {
 public:
  virtual ~Interventions() = default;
  // The stream at a residual site, before it is tapped. x [1, T, D].
  virtual at::Tensor on_residual(Site /*site*/, int /*layer*/, const at::Tensor& x) { return x; }
  // A norm of the stream or behind a half: its output, normally apply_norm(norm, x).
  virtual NormOutput on_norm(Role role, int layer, const at::Tensor& x, const Norm& norm);
  // Null: attention as it is.
  virtual const AttentionEdit* on_attention(int /*layer*/) { return nullptr; }
  // z [1, T, H, d] before the model's own gate and W_o; n1 [1, T, D] is what q, k and v were made
  // of.
  virtual at::Tensor on_z(int /*layer*/, const at::Tensor& z, const at::Tensor& /*n1*/) {
    return z;
  }
  // act(gate) · up [1, T, d_mlp], or [tokens, d_expert] of one expert, normally gated_unit(own,
  // gate, up); `own` is the model's activation, up undefined where the MLP has no gate.
  virtual at::Tensor on_gate(int layer, const at::Tensor& gate, const at::Tensor& up,
                             Activation own);
};

}  // namespace sinkscope
