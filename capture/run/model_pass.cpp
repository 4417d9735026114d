// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/run/model_pass.h"

#include <algorithm>
#include <utility>

#include "capture/model/depth_mix.h"
#include "capture/model/model_inputs.h"
#include "capture/model/ngrams.h"
#include "capture/model/read_weights.h"
#include "capture/model/streams.h"

namespace sinkscope {
namespace {

// Calls `prepare` once for every what-if, with a tensor of each of its own lanes in order.
template <class Of, class F>
void for_what_ifs(const std::vector<Lane>& lanes, const Of& of, const F& prepare) {
  std::map<WhatIfPass*, std::vector<at::Tensor>> tensors;
  for (const Lane& lane : lanes)
    if (lane.what_if != nullptr) tensors[lane.what_if].push_back(of(lane));
  for (const auto& [what_if, own] : tensors) prepare(*what_if, own);
}

}  // namespace

ModelPass::ModelPass(const ModelFiles& model, at::Device device, at::ScalarType dtype,
                     std::int64_t keep_bytes)
    : model_(model),
      spec_(model.spec()),
      device_(device),
      dtype_(dtype),
      weights_(model, device, dtype, keep_bytes),
      layer_work_(std::int64_t{2} * spec_.q_width() + 2 * spec_.kv_width() +
                  3 * std::max(spec_.widest_mlp(), spec_.moe.n_used * spec_.moe.d_expert)) {
  if (spec_.has_head) head_rows_.emplace(model, device, dtype);
  final_mixer_ = read_stream_mixer(model, Role::mix_final_norm, kNoLayer, device, dtype);
  final_norm_ = read_norm(model, Role::ln_final, kNoLayer, device);
  if (spec_.pre_affine && spec_.has_final_norm)
    final_pre_gain_ =
        at::tensor(model.read_vector(Role::ln_final_pre, kNoLayer), at::kFloat).to(device);
  if (spec_.depth_block > 0)
    final_query_ = at::tensor(model.read_vector(Role::depth_final_query, kNoLayer), at::kFloat)
                       .view({1, -1})
                       .to(device);
  if (spec_.rope.has_divisors) divisors_ = model.read_vector(Role::rope_divisors, kNoLayer);
  for (int layer = 0; layer < spec_.n_layers; ++layer) {
    const RopeSpec& rope = spec_.rope_of(layer);
    const auto found = std::find(ropes_.begin(), ropes_.end(), rope);
    rope_of_layer_.push_back(static_cast<std::size_t>(found - ropes_.begin()));
    if (found == ropes_.end()) ropes_.push_back(rope);
  }
}

BlockPass ModelPass::block(const Lane& lane, const LayerWeights& w, int layer) const {
  const std::size_t kind = rope_of_layer_[static_cast<std::size_t>(layer)];
  return {spec_, w, layer, lane.rotaries[kind], *lane.listener, *lane.edits, *lane.state};
}

Lane ModelPass::start(const std::vector<int>& token_ids, std::unique_ptr<TapListener> listener,
                      WhatIfPass* what_if) {
  const auto seq_len = static_cast<int>(token_ids.size());
  Lane lane;
  lane.token_ids = &token_ids;
  lane.listener = std::move(listener);
  lane.what_if = what_if;
  lane.edits = what_if != nullptr ? what_if->lane(token_ids) : std::make_unique<Interventions>();
  lane.stream = embed(model_, token_ids, device_, dtype_);
  if (spec_.embed_norm) lane.listener->on_tap(Site::embed_norm, kNoLayer, lane.stream);
  const LayerInputs own = layer_inputs(model_, token_ids, lane.stream);
  lane.state->layer_inputs = own.inputs;
  if (own.normed.defined()) lane.listener->on_tap(Site::per_layer_proj_norm, kNoLayer, own.normed);
  lane.state->token_ids = &token_ids;
  if (spec_.has_streams()) lane.stream = lane.stream.repeat({1, 1, spec_.streams.n});
  for (const RopeSpec& rope : ropes_)
    lane.rotaries.push_back(
        rotary_table(rope_frequencies(rope, spec_.n_ctx, seq_len,
                                      rope.has_divisors ? divisors_ : std::vector<float>()),
                     seq_len, device_));
  return lane;
}

void ModelPass::prepare_norm(const std::vector<Lane>& lanes, Role role, int layer, const Norm& norm,
                             const at::Tensor& pre_gain, int input) {
  if (!norm.exists()) return;
  for_what_ifs(
      lanes, [&](const Lane& lane) { return norm_input(input_of(lane.seen, input), pre_gain); },
      [&](WhatIfPass& what_if, const std::vector<at::Tensor>& inputs) {
        what_if.prepare_norm(role, layer, inputs, norm);
      });
}

void ModelPass::prepare_post_norm(const std::vector<Lane>& lanes, Role role, int layer,
                                  const Norm& norm) {
  if (!norm.exists()) return;
  for_what_ifs(
      lanes, [&](const Lane& lane) { return post_norm_input(spec_, lane.stream, lane.half_out); },
      [&](WhatIfPass& what_if, const std::vector<at::Tensor>& inputs) {
        what_if.prepare_norm(role, layer, inputs, norm);
      });
}

void ModelPass::residual_states(std::vector<Lane>& lanes, Site site, const LayerWeights& w,
                                int layer) {
  std::vector<at::Tensor> calibration;
  for (const Lane& lane : lanes)
    if (lane.is_calibration) calibration.push_back(lane.stream);
  const auto stream = [](const Lane& lane) { return lane.stream; };
  for_what_ifs(lanes, stream, [&](WhatIfPass& what_if, const std::vector<at::Tensor>& streams) {
    what_if.prepare_residual(site, layer, calibration.empty() ? streams : calibration);
  });
  for (Lane& lane : lanes) lane.stream = residual_state(block(lane, w, layer), site, lane.stream);
}

void ModelPass::read_inputs(std::vector<Lane>& lanes, Role half, const LayerWeights& w, int layer) {
  for (Lane& lane : lanes) {
    const BlockPass pass = block(lane, w, layer);
    if (half == Role::ln1 && w.ngrams) lane.stream = with_ngrams(pass, lane.stream);
    lane.seen = half_input(pass, half, lane.stream);
  }
}

bool ModelPass::run_blocks(std::vector<Lane>& lanes, JobContext job, int first_layer,
                           const std::function<void(int layer)>& layer_done) {
  for (int layer = first_layer; layer < spec_.n_layers; ++layer) {
    job.progress.layer = layer;
    if (layer + 1 == spec_.n_layers && head_rows_) head_rows_->prefetch();
    const std::shared_ptr<const LayerWeights> w = weights_.layer(layer);
    // resid_pre of a later block is resid_post of the one before: edited there already.
    if (layer == 0)
      residual_states(lanes, Site::resid_pre, *w, layer);
    else
      for (Lane& lane : lanes) lane.listener->on_tap(Site::resid_pre, layer, lane.stream);
    read_inputs(lanes, Role::ln1, *w, layer);
    prepare_norm(lanes, Role::ln1, layer, w->ln1, w->ln1_pre);
    prepare_norm(lanes, Role::ln1_k, layer, w->relative.k_norm, {}, 1);
    prepare_norm(lanes, Role::ln1_v, layer, w->relative.v_norm, {}, 2);
    for (Lane& lane : lanes) {
      if (job.stop.stop_requested()) return false;
      lane.half_out = attention_out(block(lane, *w, layer), lane.seen);
      if (!lane.half_out.defined()) return false;
      if (!spec_.parallel) lane.seen = at::Tensor();
    }
    prepare_post_norm(lanes, Role::ln1_post, layer, w->ln1_post);
    for (Lane& lane : lanes) {
      const at::Tensor out = std::exchange(lane.half_out, at::Tensor());
      lane.stream = after_attention(block(lane, *w, layer), lane.stream, out);
    }
    if (!spec_.parallel) {
      residual_states(lanes, Site::resid_mid, *w, layer);
      read_inputs(lanes, Role::ln2, *w, layer);
    }
    prepare_norm(lanes, Role::ln2, layer, w->ln2, w->ln2_pre);
    for (Lane& lane : lanes) {
      if (job.stop.stop_requested()) return false;
      lane.half_out = mlp_out(block(lane, *w, layer), std::exchange(lane.seen, at::Tensor()));
      if (!lane.half_out.defined()) return false;
    }
    prepare_post_norm(lanes, Role::ln2_post, layer, w->ln2_post);
    for (Lane& lane : lanes) {
      const at::Tensor out = std::exchange(lane.half_out, at::Tensor());
      lane.stream = after_mlp(block(lane, *w, layer), lane.stream, out);
      job.progress.done += layer_work_ * lane.stream.size(1);
    }
    residual_states(lanes, Site::resid_post, *w, layer);
    layer_done(layer);
  }
  return true;
}

at::Tensor ModelPass::final_input(const Lane& lane) const {
  if (final_query_.defined())
    return depth_mixture(final_query_, lane.stream, *lane.state, *lane.listener, kFinalDepthSites,
                         kNoLayer);
  const StreamRead read = read_streams(spec_, final_mixer_, lane.stream);
  tap_streams(*lane.listener, Site::hyper_final_norm, kNoLayer, read);
  return read.mixed;
}

std::vector<at::Tensor> ModelPass::final_norms(std::vector<Lane>& lanes) {
  for (Lane& lane : lanes) lane.seen = final_input(lane);
  prepare_norm(lanes, Role::ln_final, kNoLayer, final_norm_, final_pre_gain_);
  std::vector<at::Tensor> normed;
  for (Lane& lane : lanes) {
    const at::Tensor seen = norm_input(lane.seen, final_pre_gain_);
    if (final_pre_gain_.defined() || final_query_.defined() || spec_.has_streams())
      lane.listener->on_norm_input(Role::ln_final, kNoLayer, seen);
    const at::Tensor y = final_norm_.exists()
                             ? lane.edits->on_norm(Role::ln_final, kNoLayer, seen, final_norm_).y
                             : seen;
    lane.listener->on_tap(Site::ln_final_out, kNoLayer, y);
    lane.stream = lane.seen = at::Tensor();
    lane.state->block_states.clear();
    normed.push_back(y[0]);
  }
  return normed;
}

}  // namespace sinkscope
