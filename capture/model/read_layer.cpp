// SPDX-License-Identifier: GPL-3.0-or-later
#include "capture/model/read_layer.h"

#include <c10/core/InferenceMode.h>

#include "capture/model/layer_reader.h"

namespace sinkscope {
namespace {

void read_attention(LayerReader& from, LayerWeights& w) {
  w.q_norm = from.norm(Role::q_norm);
  w.k_norm = from.norm(Role::k_norm);
  w.qkv = from.matrix({Role::q, Role::k, Role::v, Role::attn_gate});
  w.qkv_bias = from.vector({{Role::q_bias, Role::q},
                            {Role::k_bias, Role::k},
                            {Role::v_bias, Role::v},
                            {Role::attn_gate_bias, Role::attn_gate}});
  if (!from.has(Role::index_q)) return;
  w.index_q = from.matrix({Role::index_q, Role::index_k});
  w.index_q_norm = from.norm(Role::index_q_norm);
  w.index_k_norm = from.norm(Role::index_k_norm);
}

void read_latents(LayerReader& from, LayerWeights& w) {
  if (from.has(Role::q_a)) w.q_a = from.matrix({Role::q_a});
  w.q_a_norm = from.norm(Role::q_a_norm);
  w.qkv = from.matrix({Role::q, Role::attn_gate});
  w.kv_a = from.matrix({Role::kv_a});
  w.kv_a_norm = from.norm(Role::kv_a_norm);
  w.kv_b = from.matrix({Role::k, Role::v});
  if (!from.has(Role::index_q)) return;
  w.index_q = from.matrix({Role::index_q});
  w.index_k = from.matrix({Role::index_k});
  w.index_weights = from.matrix({Role::index_weights});
  w.index_k_norm = from.norm(Role::index_k_norm);
}

void read_shared(LayerReader& from, const ArchSpec& spec, LayerWeights& w) {
  w.q_a = from.matrix({Role::q_a});
  w.q_a_norm = from.norm(Role::q_a_norm);
  w.qkv = from.matrix({Role::q});
  w.kv_a = from.matrix({Role::k});
  w.k_norm = from.norm(Role::k_norm);
  w.compressor = from.compressor(Role::compress_kv);
  w.index_compressor = from.compressor(Role::index_kv);
  if (from.has(Role::index_q)) {
    w.index_q = from.matrix({Role::index_q});
    w.index_weights = from.matrix({Role::index_weights});
  }
  w.o_down = from.matrix({Role::o_down}).unflatten(0, {spec.o_groups, spec.o_rank});
}

void read_delta(LayerReader& from, LayerWeights& w) {
  w.qkv = from.matrix({Role::delta_q, Role::delta_k, Role::delta_v, Role::delta_gate,
                       Role::delta_beta, Role::delta_decay});
  w.delta_conv = from.plain(Role::delta_conv);
  w.delta_log_rate = from.plain(Role::delta_log_rate);
  w.delta_dt_bias = from.plain(Role::delta_dt_bias);
  w.delta_norm = from.norm(Role::delta_norm);
  if (!from.has(Role::delta_gate_up)) return;
  w.delta_gate_up = from.matrix({Role::delta_gate_up});
  w.delta_decay_up = from.matrix({Role::delta_decay_up});
}

void read_relative(LayerReader& from, RelativeWeights& w) {
  w.k_norm = from.norm(Role::ln1_k);
  w.v_norm = from.norm(Role::ln1_v);
  w.query = from.matrix({Role::q, Role::attn_gate, Role::r, Role::sink_proj});
  w.key = from.matrix({Role::k, Role::k_taps_proj});
  w.value = from.matrix({Role::v, Role::v_taps_proj});
  w.k_conv = from.plain_rows(Role::k_conv);
  w.v_conv = from.plain_rows(Role::v_conv);
  w.k_taps = from.plain_rows(Role::k_taps);
  w.v_taps = from.plain_rows(Role::v_taps);
  w.q_scale = from.plain_rows(Role::q_scale);
  w.r_scale = from.plain_rows(Role::r_scale);
  w.profiles = from.plain_rows(Role::profiles);
  w.attn_conv = from.plain_rows(Role::attn_conv);
  w.mlp_conv = from.plain_rows(Role::mlp_conv);
}

void read_mixer(LayerReader& from, const ArchSpec& spec, Mixer mixer, LayerWeights& w) {
  switch (mixer) {
    case Mixer::shared:
      read_shared(from, spec, w);
      break;
    case Mixer::attention:
      read_attention(from, w);
      break;
    case Mixer::latent:
      read_latents(from, w);
      break;
    case Mixer::delta:
      read_delta(from, w);
      break;
    case Mixer::relative:
      read_relative(from, w.relative);
      break;
  }
  w.sink = from.plain(Role::sink);
  w.o = from.matrix({Role::o});
  w.o_bias = from.vector({{Role::o_bias, Role::o}});
}

void read_mlp(LayerReader& from, bool is_gated, LayerWeights& w) {
  w.gate_up = is_gated ? from.matrix({Role::gate, Role::up}) : from.matrix({Role::up});
  w.gate_up_bias = is_gated
                       ? from.vector({{Role::gate_bias, Role::gate}, {Role::up_bias, Role::up}})
                       : from.vector({{Role::up_bias, Role::up}});
  w.down = from.matrix({Role::down});
  w.down_bias = from.vector({{Role::down_bias, Role::down}});
}

void read_mixture(LayerReader& from, std::int64_t n_experts, LayerWeights& w) {
  w.router = from.matrix({Role::router});
  w.router_bias = from.vector({{Role::router_bias, Role::router}});
  w.choice_bias = from.plain(Role::choice_bias);
  w.route_table = from.whole_numbers(Role::route_table, n_experts);
  if (from.has(Role::shared_up)) {
    w.shared.gate_up = from.matrix({Role::shared_gate, Role::shared_up});
    w.shared.down = from.matrix({Role::shared_down});
  }
  if (from.has(Role::shared_router)) w.shared_router = from.matrix({Role::shared_router});
  w.router_scale = from.plain(Role::router_scale);
  w.expert_scale = from.plain(Role::expert_scale);
  w.ln2_experts = from.norm(Role::ln2_experts);
  w.ln2_post_dense = from.norm(Role::ln2_post_dense);
  w.ln2_post_experts = from.norm(Role::ln2_post_experts);
}

}  // namespace

std::shared_ptr<const LayerWeights> read_layer(const ModelFiles& model, int layer,
                                               at::Device device, at::ScalarType dtype) {
  const c10::InferenceMode inference;
  const ArchSpec& spec = model.spec();
  LayerReader from(model, layer, device, dtype);
  auto w = std::make_shared<LayerWeights>();
  w->ln1 = from.norm(Role::ln1);
  w->ln2 = from.norm(Role::ln2);
  w->ln1_post = from.norm(Role::ln1_post);
  w->ln2_post = from.norm(Role::ln2_post);
  w->ln1_pre = from.plain(Role::ln1_pre);
  w->ln2_pre = from.plain(Role::ln2_pre);
  read_mixer(from, spec, spec.mixer(layer), *w);
  if (spec.has_experts(layer)) {
    read_mixture(from, spec.moe.n_experts, *w);
    w->experts = std::make_shared<ExpertSource>(model, layer, device, dtype);
  }
  if (from.has(Role::down)) read_mlp(from, spec.mlp_gated, *w);
  if (from.has(Role::per_layer_gate)) {
    w->per_layer_gate = from.matrix({Role::per_layer_gate});
    w->per_layer_out = from.matrix({Role::per_layer_out});
    w->per_layer_post = from.norm(Role::per_layer_post);
  }
  w->layer_scale = from.plain(Role::layer_scale);
  w->depth_attn_query = from.plain_rows(Role::depth_attn_query);
  w->depth_mlp_query = from.plain_rows(Role::depth_mlp_query);
  w->mix1 = from.mixer(Role::mix1_norm);
  w->mix2 = from.mixer(Role::mix2_norm);
  w->ngrams = from.ngrams();
  w->n_bytes = from.n_bytes();
  return w;
}

}  // namespace sinkscope
