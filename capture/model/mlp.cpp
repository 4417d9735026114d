// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cmath>
#include <vector>

#include "capture/model/blocks.h"
#include "capture/model/linear.h"
#include "capture/model/mlp_chunk.h"

namespace sinkscope {
namespace {

// What a listener has asked for of a chunked product, put together again.
class TapPieces {
 public:
  TapPieces(const BlockPass& pass, Site site) : pass_(pass), site_(site) {}
  void add(const at::Tensor& piece) {
    if (piece.defined() && pass_.listener.wants(site_, pass_.layer)) pieces_.push_back(piece);
  }
  void tap() {
    if (!pieces_.empty())
      pass_.listener.on_tap(site_, pass_.layer,
                            pieces_.size() == 1 ? pieces_.front() : at::cat(pieces_, 1));
  }

 private:
  const BlockPass& pass_;
  Site site_;
  std::vector<at::Tensor> pieces_;
};

// A chunk of tokens at a time: gate, up and their product are by far the widest tensors of a block.
at::Tensor dense_mlp(const BlockPass& pass, const at::Tensor& n2) {
  const auto& [spec, w, layer, rotary, listener, edits, state] = pass;
  const std::int64_t T = n2.size(1), width = spec.mlp_of(layer), most = mlp_chunk(T, width);
  TapPieces pre(pass, Site::mlp_pre), linear(pass, Site::mlp_pre_linear),
      post(pass, Site::mlp_post);
  at::Tensor out;
  for (std::int64_t t = 0; t < T; t += most) {
    if (listener.stop().stop_requested()) return {};
    const std::int64_t n = std::min(most, T - t);
    const at::Tensor gate_up = linear_layer(n2.narrow(1, t, n), w.gate_up, w.gate_up_bias);
    const at::Tensor gate = gate_up.narrow(-1, 0, width);
    at::Tensor up;
    if (spec.mlp_gated) up = gate_up.narrow(-1, width, width);
    const at::Tensor hidden = edits.on_gate(layer, gate, up, spec.activation);
    pre.add(gate);
    linear.add(up);
    post.add(hidden);
    const at::Tensor rows = linear_layer(hidden, w.down, w.down_bias);
    if (n == T) {
      out = rows;
      break;
    }
    if (!out.defined()) out = at::empty({1, T, rows.size(-1)}, rows.options());
    out.narrow(1, t, n).copy_(rows);
  }
  pre.tap();
  linear.tap();
  post.tap();
  return out;
}

// Experts beside the dense MLP, each behind a norm of its own; the router reads the stream.
at::Tensor both_mlps(const BlockPass& pass, const at::Tensor& n2, const at::Tensor& seen) {
  const auto& [spec, w, layer, rotary, listener, edits, state] = pass;
  const auto tapped = [&](Site site, const at::Tensor& x) {
    pass.listener.on_tap(site, pass.layer, x);
    return x;
  };
  const at::Tensor dense_out = dense_mlp(pass, n2);
  if (!dense_out.defined()) return {};
  const at::Tensor dense =
      tapped(Site::ln2_post_dense_out, apply_norm(w.ln2_post_dense, dense_out).y);
  const at::Tensor unit = tapped(Site::router_norm, unit_rms(seen, spec.norm_eps));
  const at::Tensor routed =
      unit.to(at::kFloat) * w.router_scale / std::sqrt(static_cast<double>(spec.d_model));
  const at::Tensor n = tapped(Site::ln2_experts_out, apply_norm(w.ln2_experts, seen).y);
  const at::Tensor mixed = moe_block(pass, n, routed.to(seen.scalar_type()));
  if (!mixed.defined()) return {};
  return dense + tapped(Site::ln2_post_experts_out, apply_norm(w.ln2_post_experts, mixed).y);
}

}  // namespace

at::Tensor feed_forward(const BlockPass& pass, const at::Tensor& n2, const at::Tensor& seen) {
  if (!pass.w.experts) return dense_mlp(pass, n2);
  return pass.spec.moe.beside_dense ? both_mlps(pass, n2, seen) : moe_block(pass, n2, n2);
}

}  // namespace sinkscope
