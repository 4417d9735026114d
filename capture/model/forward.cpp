// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/model/forward.h"

#include <utility>

#include "capture/model/blocks.h"
#include "capture/model/depth_mix.h"
#include "capture/model/linear.h"
#include "capture/model/short_convolution.h"

namespace sinkscope {
namespace {

// What the norm in front of a half puts out; the state itself where there is none.
at::Tensor normed(const BlockPass& pass, Role role, const Norm& norm, const at::Tensor& pre_gain,
                  const at::Tensor& x) {
  if (!norm.exists()) return x;
  const bool is_first = role == Role::ln1;
  const at::Tensor seen = norm_input(x, pre_gain);
  if (pre_gain.defined() || pass.spec.depth_block > 0 || pass.spec.has_streams())
    pass.listener.on_norm_input(role, pass.layer, seen);
  const NormOutput out = pass.edits.on_norm(role, pass.layer, seen, norm);
  if (out.gate.defined())
    pass.listener.on_tap(is_first ? Site::ln1_gate : Site::ln2_gate, pass.layer, out.gate);
  pass.listener.on_tap(is_first ? Site::ln1_out : Site::ln2_out, pass.layer, out.y);
  return out.y;
}

// The norm behind a half, of what it reads.
at::Tensor post_normed(const BlockPass& pass, bool is_first, const at::Tensor& x) {
  const Role role = is_first ? Role::ln1_post : Role::ln2_post;
  const Norm& norm = is_first ? pass.w.ln1_post : pass.w.ln2_post;
  pass.listener.on_norm_input(role, pass.layer, x);
  const at::Tensor y = pass.edits.on_norm(role, pass.layer, x, norm).y;
  pass.listener.on_tap(is_first ? Site::ln1_post_out : Site::ln2_post_out, pass.layer, y);
  return y;
}

// The stream with what a half adds to it: normed and scaled where the model does so.
at::Tensor added(const BlockPass& pass, Role half, const at::Tensor& stream,
                 const at::Tensor& out) {
  const auto& [spec, w, layer, rotary, listener, edits, state] = pass;
  const bool is_first = half == Role::ln1;
  const Norm& norm = is_first ? w.ln1_post : w.ln2_post;
  at::Tensor sum = out;
  if (const at::Tensor& taps = is_first ? w.relative.attn_conv : w.relative.mlp_conv;
      taps.defined())
    sum = residual_convolution(sum, taps);
  if (norm.exists() && !spec.post_norm) sum = post_normed(pass, is_first, sum);
  if (spec.residual_scale != 1) sum = sum * spec.residual_scale;
  listener.on_tap(is_first ? Site::attn_out : Site::mlp_out, layer, sum);
  if (state.read.take.defined()) return write_streams(std::exchange(state.read, {}), stream, sum);
  sum = is_first && spec.starts_depth_block(layer) ? restarted(pass, stream, sum) : stream + sum;
  if (!spec.post_norm) return sum;
  listener.on_tap(is_first ? Site::resid_mid_sum : Site::resid_post_sum, layer, sum);
  return post_normed(pass, is_first, sum);
}

// What a layer makes of its own input, added behind the MLP.
at::Tensor with_layer_input(const BlockPass& pass, const at::Tensor& x) {
  const auto& [spec, w, layer, rotary, listener, edits, state] = pass;
  if (!w.per_layer_gate.defined()) return x;
  const at::Tensor own = state.layer_inputs.select(2, layer);
  const at::Tensor gated =
      activate(spec.activation, linear_layer(x, w.per_layer_gate)).to(own.scalar_type()) * own;
  const at::Tensor add = apply_norm(w.per_layer_post, linear_layer(gated, w.per_layer_out)).y;
  listener.on_tap(Site::per_layer_add, layer, add);
  return x + add;
}

}  // namespace

NormOutput Interventions::on_norm(Role /*role*/, int /*layer*/, const at::Tensor& x,
                                  const Norm& norm) {
  return apply_norm(norm, x);
}

at::Tensor Interventions::on_gate(int /*layer*/, const at::Tensor& gate, const at::Tensor& up,
                                  Activation own) {
  return gated_unit(own, gate, up);
}

at::Tensor norm_input(const at::Tensor& x, const at::Tensor& pre_gain) {
  return pre_gain.defined() ? (x * pre_gain).to(x.scalar_type()) : x;
}

at::Tensor residual_state(const BlockPass& pass, Site site, const at::Tensor& x) {
  const at::Tensor state = pass.edits.on_residual(site, pass.layer, x);
  pass.listener.on_tap(site, pass.layer, state);
  return state;
}

void tap_streams(TapListener& listener, Site norm, int layer, const StreamRead& read) {
  if (!read.gate.defined() && !read.pre.defined()) return;
  const auto tap = [&](int place, const at::Tensor& value) {
    if (value.defined())
      listener.on_tap(static_cast<Site>(static_cast<int>(norm) + place), layer, value);
  };
  tap(0, read.normed);
  tap(1, read.gate);
  tap(2, read.pre);
  tap(3, read.mixed);
  tap(read.gate.defined() ? 4 : 5, read.take);
  tap(6, read.comb);
}

namespace {

at::Tensor mix_tokens(const BlockPass& pass, const at::Tensor& n1, const at::Tensor& seen) {
  switch (pass.spec.mixer(pass.layer)) {
    case Mixer::latent:
      return latent_attention(pass, n1);
    case Mixer::delta:
      return delta_net(pass, n1);
    case Mixer::relative:
      return relative_attention(pass, n1, seen);
    case Mixer::shared:
      return shared_attention(pass, n1);
    case Mixer::attention:
      break;
  }
  return softmax_attention(pass, n1);
}

}  // namespace

at::Tensor half_input(const BlockPass& pass, Role half, const at::Tensor& stream) {
  if (pass.spec.depth_block > 0) return depth_input(pass, half, stream);
  if (!pass.spec.has_streams()) return stream;
  const bool is_first = half == Role::ln1;
  pass.state.read = read_streams(pass.spec, is_first ? pass.w.mix1 : pass.w.mix2, stream);
  StreamRead& read = pass.state.read;
  tap_streams(pass.listener, is_first ? Site::hyper_attn_norm : Site::hyper_mlp_norm, pass.layer,
              read);
  const at::Tensor mixed = std::move(read.mixed);
  read.normed = read.gate = read.pre = at::Tensor();  // not kept until the half is written
  return mixed;
}

at::Tensor attention_out(const BlockPass& pass, const at::Tensor& seen) {
  const at::Tensor& w_pre = pass.w.ln1_pre;
  return mix_tokens(pass, normed(pass, Role::ln1, pass.w.ln1, w_pre, input_of(seen, 0)), seen);
}

at::Tensor after_attention(const BlockPass& pass, const at::Tensor& x, const at::Tensor& out) {
  return added(pass, Role::ln1, x, out);
}

at::Tensor post_norm_input(const ArchSpec& spec, const at::Tensor& x, const at::Tensor& out) {
  if (!spec.post_norm) return out;
  return x + (spec.residual_scale != 1 ? out * spec.residual_scale : out);
}

at::Tensor mlp_out(const BlockPass& pass, const at::Tensor& seen) {
  return feed_forward(pass, normed(pass, Role::ln2, pass.w.ln2, pass.w.ln2_pre, seen), seen);
}

at::Tensor after_mlp(const BlockPass& pass, const at::Tensor& mid, const at::Tensor& out) {
  const at::Tensor x = with_layer_input(pass, added(pass, Role::ln2, mid, out));
  return pass.w.layer_scale.defined() ? (x * pass.w.layer_scale).to(x.scalar_type()) : x;
}

}  // namespace sinkscope
